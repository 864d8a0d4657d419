import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type AnyMessage,
  type ClientCapabilities,
  type ClientConnection,
  type ContentBlock,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  type RequestPermissionRequest,
  type SessionUpdate,
  type Stream,
} from '@agentclientprotocol/sdk';
import { builtCommand, withBuiltPackage } from '../../cli/support/built-package.ts';
import { startProcess, type TestProcess } from '../../support/child-process.ts';

const agentsFile = fileURLToPath(new URL('../fixture/agents.ts', import.meta.url));

/** The messages of a process. Each line of its standard output must be one. */
function streamOf(process: TestProcess): Stream {
  return {
    readable: new ReadableStream({
      async pull(controller) {
        try {
          controller.enqueue(await process.take((line) => JSON.parse(line) as AnyMessage));
        } catch (error) {
          if (error instanceof SyntaxError) controller.error(error);
          else controller.close();
        }
      },
    }),
    writable: new WritableStream({
      write: (message) => process.send(JSON.stringify(message)),
    }),
  };
}

type Answer = (
  request: RequestPermissionRequest,
) => Promise<string | undefined> | string | undefined;

/** An editor: the client of the official SDK, over the standard input and output of `waymark acp`. */
export class TestEditor {
  readonly process: TestProcess;
  readonly connection: ClientConnection;
  readonly updates: SessionUpdate[] = [];
  readonly asked: RequestPermissionRequest[] = [];
  readonly terminals: string[] = [];
  /** The texts of open files, by path. */
  readonly buffers = new Map<string, string>();
  readonly saved: string[] = [];
  onPermission: Answer = () => 'allow';
  onElicitation: (request: CreateElicitationRequest) => CreateElicitationResponse = () => ({
    action: 'cancel',
  });
  onRead: (path: string) => Promise<string | undefined> | string | undefined = (path) =>
    this.buffers.get(path);
  onTerminal: () => Promise<void> | void = () => {};
  onUpdate: (update: SessionUpdate) => void = () => {};

  constructor(
    folder: string,
    args: readonly string[] = [],
    { file = agentsFile, ...more }: Record<string, string> = {},
  ) {
    const { options, env } = withBuiltPackage();
    mkdirSync(join(folder, 'project'), { recursive: true });
    this.process = startProcess([...options, builtCommand(), 'acp', file, ...args], {
      cwd: folder,
      env: {
        ...env,
        ...more,
        NO_COLOR: '1',
        ACP_STORE: join(folder, 'acp.db'),
        ACP_LOG: join(folder, 'log.txt'),
      },
    });
    const terminals = this.terminals;
    this.connection = client({ name: 'test' })
      .onRequest('session/request_permission', async ({ params }) => {
        this.asked.push(params);
        const optionId = await this.onPermission(params);
        if (optionId === undefined) return { outcome: { outcome: 'cancelled' } };
        return { outcome: { outcome: 'selected', optionId } };
      })
      .onRequest('elicitation/create', ({ params }) => this.onElicitation(params))
      .onRequest('fs/read_text_file', async ({ params: { path } }) => {
        const content = await this.onRead(path);
        if (content === undefined) throw new Error('Not open.');
        return { content };
      })
      .onRequest('fs/write_text_file', ({ params: { path, content } }) => {
        this.buffers.set(path, content);
        this.saved.push(path);
        return {};
      })
      .onRequest('terminal/create', ({ params: { args = [] } }) => {
        terminals.push(args.at(-1) ?? '');
        return { terminalId: `terminal-${terminals.length}` };
      })
      .onRequest('terminal/wait_for_exit', async () => {
        await this.onTerminal();
        return { exitCode: 0 };
      })
      .onRequest('terminal/output', () => ({ output: 'from the terminal', truncated: false }))
      .onRequest('terminal/release', () => ({}))
      .onNotification('session/update', ({ params: { update } }) => {
        this.updates.push(update);
        this.onUpdate(update);
      })
      .connect(streamOf(this.process));
  }

  get agent(): ClientConnection['agent'] {
    return this.connection.agent;
  }

  async initialize(clientCapabilities: ClientCapabilities = {}) {
    return await this.agent.request('initialize', { protocolVersion: 1, clientCapabilities });
  }

  async open(cwd: string, more: object = {}): Promise<string> {
    const { sessionId } = await this.agent.request('session/new', { cwd, mcpServers: [], ...more });
    return sessionId;
  }

  async say(sessionId: string, text: string): Promise<string> {
    const prompt: ContentBlock[] = [{ type: 'text', text }];
    const { stopReason } = await this.agent.request('session/prompt', { sessionId, prompt });
    await this.settled();
    return stopReason;
  }

  async load(sessionId: string, cwd: string): Promise<void> {
    await this.agent.request('session/load', { sessionId, cwd, mcpServers: [] });
    await this.settled();
  }

  /** The SDK handles updates in microtasks, and so may resolve a response before the updates that came earlier. */
  async settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The updates so far, which are then forgotten. */
  take(): SessionUpdate[] {
    return this.updates.splice(0);
  }

  /** The text of the agent among updates. */
  text(updates: readonly SessionUpdate[] = this.updates): string {
    return updates
      .map((each) =>
        each.sessionUpdate === 'agent_message_chunk' && each.content.type === 'text'
          ? each.content.text
          : '',
      )
      .join('');
  }

  /** Resolves once an update fits. */
  async sees(fits: (update: SessionUpdate) => boolean): Promise<void> {
    if (this.updates.some(fits)) return;
    await new Promise<void>((resolve) => {
      this.onUpdate = (update) => {
        if (fits(update)) resolve();
      };
    });
  }

  async leave(): Promise<void> {
    this.connection.close();
    await this.process.end('SIGTERM');
  }
}
