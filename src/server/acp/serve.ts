import { isAbsolute } from 'node:path';
import type { Stream } from '@agentclientprotocol/sdk';
import { loadSdk } from '../../acp/sdk.ts';
import type { Agent } from '../../agent/contract/agent.ts';
import { isWaymarkError, messageOf } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { AcpSession, type Connection, type OpenedWith } from './session.ts';

export interface ServeAcpOptions {
  readonly agent: Agent;
  readonly owner?: string | undefined;
  readonly models: readonly string[];
  readonly contextWindow?: number | undefined;
  readonly version: string;
  readonly stream: Stream;
  /** Ends the connection. */
  readonly signal: AbortSignal;
}

/** Serves an agent to one ACP client, until the connection ends. Running prompts are then stopped. */
export async function serveAcp(options: ServeAcpOptions): Promise<void> {
  const { agent: served, owner, models, contextWindow, version, stream, signal } = options;
  const { agent, RequestError, PROTOCOL_VERSION } = await loadSdk();
  const sessions = new Map<string, AcpSession>();
  let capabilities: Connection['capabilities'] = {};
  const call = defined({ owner });

  const orRefuse = async <Value>(sessionId: string | undefined, work: () => Promise<Value>) => {
    try {
      return await work();
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      const { status, message } = error;
      if (status === 'NOT_FOUND' && sessionId !== undefined) {
        throw RequestError.sessionNotFound(sessionId);
      }
      const code = status === 'INVALID_ARGUMENT' || status === 'OUT_OF_RANGE' ? -32602 : -32603;
      throw new RequestError(code, message, { status });
    }
  };
  const opened = (sessionId: string): AcpSession => {
    const session = sessions.get(sessionId);
    if (session === undefined) throw RequestError.sessionNotFound(sessionId);
    return session;
  };
  const open = async (id: string, given: OpenedWith, client: Connection['client']) => {
    if (!isAbsolute(given.cwd)) {
      throw RequestError.invalidParams({ cwd: given.cwd }, '"cwd" must be an absolute path');
    }
    const connection = { client, capabilities, agent: served, owner, models, contextWindow };
    const session = await orRefuse(id, async () => new AcpSession(connection, id, given));
    const before = sessions.get(id);
    sessions.set(id, session);
    await before?.close();
    return session;
  };
  /** A stored session of this agent and owner; others are unknown. */
  const openStored = async (
    { sessionId, ...given }: OpenedWith & { readonly sessionId: string },
    client: Connection['client'],
  ) => {
    const known = await orRefuse(sessionId, () =>
      served.getSession(sessionId, { ...call, messages: { last: 1 } }),
    );
    if (known === undefined) throw RequestError.sessionNotFound(sessionId);
    return await open(sessionId, given, client);
  };
  const settings = ({ modes, configOptions }: AcpSession) => ({ modes, configOptions });
  /** After the response, which tells the client that there is such a session. */
  const announceSoon = (session: AcpSession): void => {
    setImmediate(() => void session.announce().catch(logged));
  };

  const app = agent({ name: 'waymark' })
    .onRequest('initialize', ({ params }) => {
      capabilities = params.clientCapabilities ?? {};
      return {
        // The client closes the connection if it does not know this version.
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'waymark', title: served.name, version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: true, embeddedContext: true },
          mcpCapabilities: { http: true, sse: false },
          sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
        },
        authMethods: [],
      };
    })
    .onRequest('authenticate', () => ({}))
    .onRequest('session/new', async ({ params, client }) => {
      const session = await open(crypto.randomUUID(), params, client);
      announceSoon(session);
      return { sessionId: session.id, ...settings(session) };
    })
    .onRequest('session/load', async ({ params, client }) => {
      const session = await openStored(params, client);
      await orRefuse(session.id, () => session.replay());
      announceSoon(session);
      return settings(session);
    })
    .onRequest('session/resume', async ({ params, client }) => {
      const session = await openStored(params, client);
      announceSoon(session);
      return settings(session);
    })
    .onRequest('session/list', async ({ params }) => {
      const { cwd, cursor } = params;
      const page = await orRefuse(undefined, () =>
        served.listSessions({ ...call, ...(cursor && { cursor }) }),
      );
      const sessions = page.items.map(({ sessionId, title, updatedAt, metadata }) => ({
        sessionId,
        cwd: typeof metadata?.cwd === 'string' ? metadata.cwd : process.cwd(),
        title: title ?? null,
        updatedAt,
      }));
      return {
        // A page may have fewer sessions than the list, or none.
        sessions: sessions.filter((each) => !cwd || each.cwd === cwd),
        ...(page.next !== undefined && { nextCursor: page.next }),
      };
    })
    .onRequest('session/delete', async ({ params: { sessionId } }) => {
      await close(sessionId);
      const isKnown = await orRefuse(sessionId, () => served.deleteSession(sessionId, call));
      if (!isKnown) throw RequestError.sessionNotFound(sessionId);
      return {};
    })
    .onRequest('session/close', async ({ params: { sessionId } }) => {
      opened(sessionId);
      await close(sessionId);
      return {};
    })
    .onRequest('session/set_mode', async ({ params: { sessionId, modeId } }) => {
      await orRefuse(sessionId, () => opened(sessionId).configure('mode', modeId));
      return {};
    })
    .onRequest('session/set_config_option', async ({ params: { sessionId, configId, value } }) => {
      const session = opened(sessionId);
      await orRefuse(sessionId, () => session.configure(configId, value));
      return { configOptions: session.configOptions };
    })
    .onRequest('session/prompt', async ({ params: { sessionId, prompt }, signal: cancelled }) => {
      const session = opened(sessionId);
      const stopReason = await orRefuse(sessionId, () => session.prompt(prompt, cancelled));
      return { stopReason };
    })
    .onNotification('session/cancel', ({ params: { sessionId } }) => {
      sessions.get(sessionId)?.cancel();
    });

  const close = async (sessionId: string): Promise<void> => {
    const session = sessions.get(sessionId);
    sessions.delete(sessionId);
    await session?.close();
  };

  const connection = app.connect(stream);
  const stop = (): void => connection.close();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    await connection.closed;
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.allSettled([...sessions.keys()].map(close));
  }
}

function logged(error: unknown): void {
  console.error(messageOf(error));
}
