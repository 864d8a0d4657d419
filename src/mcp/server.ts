import type { ActionContext } from '../core/action.ts';
import { failedPrecondition, hasStatus, type WaymarkError } from '../core/error.ts';
import { systemClock } from '../core/time.ts';
import type { Skill } from '../generate/skill/skill.ts';
import type { ToolSource, ToolSourceStatus } from '../generate/tool/tool-source.ts';
import type { Message, Part } from '../protocol/message.ts';
import { McpConnection } from './connection.ts';
import { readContent, toMessages } from './content.ts';
import type { McpServer, McpUrl } from './options.ts';
import { findSkill, listSkills, type SkillServer } from './skills.ts';
import { listTools, type ServerTool, toTools } from './tools.ts';

type Scope = Parameters<ToolSource['list']>[0];

const defaultTtlMs = 300_000;
const maxTtlMs = 86_400_000;

/** One server: its connection, and its tools as they were last listed. */
export class Server {
  readonly name: string;
  readonly #options: McpServer;
  readonly #connection: McpConnection;
  #known: readonly ServerTool[] | undefined;
  #validUntil = 0;
  #listing: Promise<readonly ServerTool[]> | undefined;
  #skills: { readonly list: Promise<readonly Skill[]>; validUntil: number } | undefined;
  // Counts announced changes, so that a list read before one is not taken for a current one.
  #changes = 0;

  constructor(name: string, options: McpServer, user: string | undefined) {
    this.name = name;
    this.#options = options;
    this.#connection = new McpConnection(name, { options, user }, () => this.#outdate());
  }

  async list(scope: Scope): Promise<readonly ServerTool[]> {
    if (this.#known && this.#now() < this.#validUntil) return this.#known;
    try {
      this.#listing ??= this.#read(scope.report).finally(() => {
        this.#listing = undefined;
      });
      return await this.#listing;
    } catch (error) {
      // With the last known list, the model gets a clear error from the tool that it calls.
      if (!this.#known || hasStatus(error, 'INVALID_ARGUMENT')) throw error;
      scope.report(error);
      return this.#known;
    }
  }

  /** Its skills as they were last listed, until the list is no longer valid. */
  async listSkills({ report }: Scope): Promise<readonly Skill[]> {
    if (this.#skills && this.#now() < this.#skills.validUntil) return await this.#skills.list;
    const { ttl = defaultTtlMs } = this.#options;
    const list = listSkills(this.#skillServer(), report).then(
      ({ skills, ttlMs = ttl }) => {
        entry.validUntil = this.#now() + Math.min(Math.max(ttlMs, 0), maxTtlMs);
        return skills;
      },
      (error: unknown) => {
        if (this.#skills === entry) this.#skills = undefined;
        throw error;
      },
    );
    const entry = { list, validUntil: Number.POSITIVE_INFINITY };
    this.#skills = entry;
    return await list;
  }

  async findSkill(path: string, signal: AbortSignal): Promise<Skill | undefined> {
    return await findSkill(this.#skillServer(), path, signal);
  }

  #skillServer(): SkillServer {
    return {
      server: this.name,
      timeout: this.#options.timeout ?? 60_000,
      ask: async (doing, signal, send) =>
        await this.#connection.withClient(signal, (open) => open.ask(doing, signal, send)),
    };
  }

  async read(uri: string, signal: AbortSignal): Promise<Part[]> {
    const { timeout = 60_000 } = this.#options;
    return await this.#connection.withClient(signal, (open) =>
      open.ask(`the resource "${uri}"`, signal, (client) =>
        readContent(client, uri, { signal, timeout }),
      ),
    );
  }

  async prompt(name: string, input: Readonly<Record<string, string>>): Promise<readonly Message[]> {
    const { timeout = 60_000 } = this.#options;
    const params = { name, arguments: { ...input } };
    return await this.#connection.withClient(undefined, (open) =>
      open.ask(`the prompt "${name}"`, undefined, async (client) =>
        toMessages((await client.getPrompt(params, { timeout })).messages),
      ),
    );
  }

  status(): ToolSourceStatus {
    return { ...this.#connection.status(), tools: this.#known?.map(({ tool }) => tool) };
  }

  get isInUse(): boolean {
    return this.#connection.isInUse;
  }

  /** Closes the connection now, and from now on after each use: tools that were listed before may still be called. */
  release(): void {
    this.#connection.release();
  }

  async close(): Promise<void> {
    await this.#connection.close();
    this.#skills = undefined;
    this.#outdate();
  }

  async #read(report: Scope['report']): Promise<readonly ServerTool[]> {
    const { prefix = `${this.name}_`, rename = {}, timeout = 60_000 } = this.#options;
    const changes = this.#changes;
    const listed = await this.#connection.withClient(undefined, (open) =>
      open
        .ask('the list of its tools', undefined, (client) =>
          open.toolLimit.during(() => listTools(client, { timeout }), report),
        )
        .catch((error: WaymarkError) => {
          this.#connection.note(error);
          throw error;
        }),
    );
    const { tools, ttlMs = this.#options.ttl ?? defaultTtlMs } = listed;
    const about = {
      server: this.name,
      prefix,
      rename,
      timeout,
      connection: this.#connection,
      tasks: this.#options.tasks ?? false,
      clock: this.#options.clock ?? systemClock,
      onUnknownTool: () => this.#outdate(),
    };
    this.#known = toTools(tools, about, report);
    const isCurrent = changes === this.#changes;
    this.#validUntil = isCurrent ? this.#now() + Math.min(Math.max(ttlMs, 0), maxTtlMs) : 0;
    return this.#known;
  }

  #outdate(): void {
    this.#changes += 1;
    this.#validUntil = 0;
  }

  #now(): number {
    return (this.#options.clock ?? systemClock).now();
  }
}

/**
 * A server as each user sees it: one connection for all of them, or one for each. A server of 2025 holds a stream open for each
 * connection, so the least recently used ones beyond `maxUsers` are closed, unless they are in use.
 */
export class Servers {
  readonly name: string;
  readonly #options: McpServer;
  readonly #userOf: McpUrl['user'];
  readonly #maxUsers: number;
  /** By user, the least recently used first. Under no name: the one for all users. */
  readonly #servers = new Map<string | undefined, Server>();

  constructor(name: string, options: McpServer, maxUsers = 500) {
    this.name = name;
    this.#maxUsers = maxUsers;
    this.#options = options;
    this.#userOf = 'url' in options ? options.user : undefined;
  }

  /** Whether each user has a connection, and may see other tools. */
  get isPerUser(): boolean {
    return this.#userOf !== undefined;
  }

  /** The server for the caller; `undefined` if the caller has none. */
  of(context: ActionContext): Server | undefined {
    if (!this.#userOf) return this.#open(undefined);
    const user = this.#userOf(context);
    return user === undefined || user === '' ? undefined : this.#open(user);
  }

  /** The server, where all users share it. */
  only(): Server {
    if (!this.#userOf) return this.#open(undefined);
    throw failedPrecondition(
      `MCP server "${this.name}" has a connection for each user (\`user\`), so its resources and prompts cannot be used without one. Create another source with the credentials for them.`,
    );
  }

  /** The state of each connection; of a server that was never asked, that of the one it will have. */
  status(): readonly ToolSourceStatus[] {
    if (this.#servers.size === 0) return this.#userOf ? [] : [{ state: 'idle', tools: undefined }];
    return [...this.#servers].map(([user, server]) => ({
      ...server.status(),
      ...(user !== undefined && { user }),
    }));
  }

  async close(): Promise<void> {
    const all = [...this.#servers.values()];
    this.#servers.clear();
    await Promise.all(all.map((server) => server.close()));
  }

  #open(user: string | undefined): Server {
    const server = this.#servers.get(user) ?? new Server(this.name, this.#options, user);
    this.#servers.delete(user);
    this.#servers.set(user, server);
    this.#releaseOldest(server);
    return server;
  }

  #releaseOldest(latest: Server): void {
    let surplus = this.#servers.size - this.#maxUsers;
    if (surplus <= 0) return;
    for (const [user, server] of this.#servers) {
      if (server === latest || server.isInUse) continue;
      this.#servers.delete(user);
      server.release();
      surplus -= 1;
      if (surplus <= 0) return;
    }
  }
}
