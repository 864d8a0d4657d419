import type { ActionContext } from '../core/action.ts';
import { WaymarkError } from '../core/error.ts';
import type { ToolSourceStatus } from '../generate/tool/tool-source.ts';
import type { McpServer, McpUrl } from './options.ts';
import { Server } from './server.ts';

/**
 * A server as each user sees it: one connection for all of them, or one for each. A server of 2025 holds a stream open for each
 * connection, so the least recently used ones beyond `mostUsers` are closed, unless they are in use.
 */
export class Servers {
  readonly name: string;
  readonly #options: McpServer;
  readonly #userOf: McpUrl['user'];
  readonly #mostUsers: number;
  /** By user, the least recently used first. Under no name: the one for all users. */
  readonly #servers = new Map<string | undefined, Server>();

  constructor(name: string, options: McpServer, mostUsers = 500) {
    this.name = name;
    this.#mostUsers = mostUsers;
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
    throw new WaymarkError(
      'FAILED_PRECONDITION',
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
    let surplus = this.#servers.size - this.#mostUsers;
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
