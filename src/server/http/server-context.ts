import type { Context, Hono } from 'hono';
import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { lifelongController } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { type Clock, waitAtMost } from '../../core/time.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { Operation } from '../../protocol/routes.ts';
import { short } from './answer.ts';
import { type AuthorizeCall, type Caller, type Identify, ownerOf, type Presence } from './auth.ts';
import type { NodeBindings, PendingConnections } from './connection.ts';
import type { HandlerOptions, ServerProtocol } from './handler-options.ts';
import type { ServerLimits, Slots } from './limits.ts';
import { logFault, type ServerLog } from './log.ts';
import type { ServedApp } from './served-app.ts';

/** The context that all protocols of one server share. */
export interface ServerContext {
  readonly app: ServedApp;
  readonly options: HandlerOptions;
  /** The protocols besides those that every server has. */
  readonly protocols: readonly MountedProtocol[];
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly log: ServerLog;
  readonly lifetime: Lifetime;
  readonly identify: Identify;
  readonly presence: Presence;
  readonly sessionOf: SessionOf;
  /** The connections of clients that are not known yet; only `serve` has them. */
  readonly pendingConnections?: PendingConnections;
  /** Stops logging what fails in the app. */
  readonly unsubscribe: () => void;
  readonly streams: Slots;
  readonly turns: Slots;
}

/** Values that travel with a request. */
export interface ServerEnv {
  Bindings: NodeBindings;
  Variables: {
    /** The server that the request came to. */
    server: ServerContext;
    caller: Caller;
    /** The owner whose sessions the person at this machine looks at in Studio; only without `auth`. */
    studioOwner?: string;
    /** Fields for this request's line in the log. */
    logged: Record<string, unknown>;
    /** How this protocol reports errors. */
    renderError?: (error: unknown) => Response | Promise<Response>;
  };
}

export type RequestContext = Context<ServerEnv>;
export type Router = Hono<ServerEnv>;

/** The routes of a protocol, in the order in which the router calls it. */
export interface MountedProtocol extends ServerProtocol {
  /** Sets how refusals are rendered, also those before the request is read. */
  prepare?(router: Router): void;
  /** Adds the routes that need no login. */
  mountPublic?(router: Router): void;
  mount(router: Router, serverContext: ServerContext): void;
}

export interface Subject {
  readonly sessionId?: string | undefined;
  readonly snapshotId?: string | undefined;
  /** Whether it changes the files of a workspace, if the agent has one. */
  readonly workspace?: boolean | undefined;
}

/** A call that was let through. */
export interface OpenCall {
  readonly agent: Agent;
  readonly caller: Caller;
  /** The owner, and a signal that aborts when the caller leaves. */
  readonly options: CallOptions;
}

export function paramOf(c: RequestContext, name: string): string {
  return c.req.param(name) ?? '';
}

/** Finds the agent and asks whether this caller may do this. */
export async function openCall(
  c: RequestContext,
  operation: Operation,
  subject: Subject = {},
): Promise<OpenCall> {
  const agent = findAgent(c.get('server').app.agents(), paramOf(c, 'agent'));
  return await openAgentCall(c, { agent, operation, ...subject });
}

/** Asks whether this caller may do this with an agent that the path of the request does not name. */
export async function openAgentCall(
  c: RequestContext,
  call: Subject & { readonly agent: Agent; readonly operation: Operation },
): Promise<OpenCall> {
  const { agent, operation } = call;
  const caller = c.get('caller');
  await authorize(c, call);
  Object.assign(c.get('logged'), { agent: agent.name, operation });
  return {
    agent,
    caller,
    // A turn has its own signals: that of the request is not created for it.
    get options() {
      return { ...ownerOf(caller), signal: c.req.raw.signal };
    },
  };
}

/** A call that the `authorize` hook judges. */
interface JudgedCall extends Subject {
  readonly operation: AuthorizeCall['operation'];
  readonly agent?: Agent | undefined;
  readonly action?: string;
}

/** Asks whether a caller may do this: that of the request, or another one. */
export async function authorize(
  c: RequestContext,
  { caller = c.get('caller'), ...call }: JudgedCall & { readonly caller?: Caller },
): Promise<void> {
  await checkCall(c.get('server'), { ...call, caller, request: c.req.raw });
}

/**
 * Asks the `authorize` hook, in every protocol by the same operations. A call that names a snapshot is judged by the
 * session that the snapshot belongs to; it is read only where there is a hook to judge it.
 */
export async function checkCall(
  { options: { authorize }, sessionOf }: ServerContext,
  {
    caller,
    sessionId,
    snapshotId,
    agent,
    workspace,
    ...call
  }: JudgedCall & { readonly request: Request; readonly caller: Caller },
): Promise<void> {
  if (!authorize) return;
  const found =
    agent && snapshotId !== undefined ? await sessionOf(agent, snapshotId, caller) : undefined;
  const hasFiles = agent !== undefined && internalsOf(agent).spec.workspace !== undefined;
  const files = hasFiles ? { workspace } : {};
  const judge = async (session: string | undefined): Promise<void> => {
    const subject = defined({ agent: agent?.name, sessionId: session, snapshotId, ...files });
    if ((await authorize({ ...caller, ...call, ...subject })) !== false) return;
    const message = `You are not allowed to do this (${call.operation}).`;
    throw new WaymarkError('PERMISSION_DENIED', message);
  };
  await judge(found ?? sessionId);
  // A call that names a session besides the snapshot of another one, such as the target of a fork, needs both.
  if (found !== undefined && sessionId !== undefined && found !== sessionId) await judge(sessionId);
}

export function logRequestFault(c: RequestContext, error: unknown): void {
  logFault(c.get('server'), error, c.get('logged'));
}

/** The agent of this name, or `NOT_FOUND`. */
export function findAgent(agents: readonly Agent[], name: string): Agent {
  const agent = agents.find((candidate) => candidate.name === name);
  if (agent) return agent;
  throw new WaymarkError('NOT_FOUND', `There is no agent ${short(name)}. GET /agents lists them.`);
}

/** Finds the session that a snapshot or run belongs to; `undefined` when this caller has no such snapshot. */
type SessionOf = (agent: Agent, snapshotId: string, caller: Caller) => Promise<string | undefined>;

/** How many answers are remembered: a snapshot never moves to another session. */
const maxKnown = 10_000;

/** For a read that does not need the messages: there can be many. */
export const lastMessageOnly = { messages: { last: 1 } };

/** Reads the session of a snapshot from the agent's store, once for each snapshot. */
export function createSessionOf(): SessionOf {
  const known = new Map<string, string>();
  return async (agent, snapshotId, caller) => {
    if (!isSnapshotId(snapshotId)) return undefined;
    const scope = { agent: agent.name, ...ownerOf(caller) };
    const key = JSON.stringify([scope.agent, scope.owner, snapshotId]);
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const { store } = internalsOf(agent).spec;
    const sessionId = (await store?.getSnapshot(scope, { snapshotId }, lastMessageOnly))?.sessionId;
    if (sessionId === undefined) return undefined;
    known.set(key, sessionId);
    const [oldest] = known.size > maxKnown ? known.keys() : [];
    if (oldest !== undefined) known.delete(oldest);
    return sessionId;
  };
}

/** A server's life from the first request to the last stream. */
interface Lifetime {
  /** Aborts when the server begins to shut down: idle connections end now. */
  readonly closing: AbortSignal;
  /** Aborts when running turns have had their time: all streams end, so that their clients reconnect to another server. */
  readonly ending: AbortSignal;
  /** `UNAVAILABLE` once the server is shutting down. */
  checkOpen(): void;
  /** Keeps the end waiting for this piece of work. */
  track<T>(work: Promise<T>): Promise<T>;
  /** Refuses new work, lets what runs finish for at most `graceMs`, then ends the streams. */
  end(graceMs: number): Promise<void>;
}

export function createLifetime(clock: Clock): Lifetime {
  const closing = lifelongController();
  const ending = lifelongController();
  const running = new Set<Promise<unknown>>();

  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.allSettled(running);
  };

  return {
    closing: closing.signal,
    ending: ending.signal,
    checkOpen() {
      if (closing.signal.aborted) throw shuttingDown();
    },
    track(work) {
      running.add(work);
      const done = (): boolean => running.delete(work);
      work.then(done, done);
      return work;
    },
    async end(graceMs) {
      closing.abort(shuttingDown());
      await waitAtMost(clock, graceMs, settled());
      ending.abort(shuttingDown());
    },
  };
}

function shuttingDown(): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    'This server is shutting down. Try again. To follow a running turn, watch it by its id.',
    { details: { retryAfter: 1 } },
  );
}
