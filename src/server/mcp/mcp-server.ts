import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import { raceSignal } from '../../core/async/signal.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { uuidv7 } from '../../core/id.ts';
import { hmacSha256, timingSafeEqual } from '../../core/platform.ts';
import type { Clock } from '../../core/time.ts';
import { headerOf } from '../http/connection.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { type Fields, type RequestId, RpcError } from '../http/json-rpc.ts';
import { fromBase64Url, randomSecret, toBase64Url } from '../http/secret.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
import { type Era, serverInfoKey } from './era.ts';
import { codes, type RpcReply } from './messages.ts';
import { offeredAgents } from './tools.ts';

/** The context that all requests of the MCP endpoint share. */
export interface McpServer {
  readonly options: McpServerOptions;
  readonly info: Fields;
  readonly states: RequestStates;
  readonly dialogs: Dialogs;
  /** The agents by the name of their tool. */
  offered(): ReadonlyMap<string, Agent>;
}

export function createMcpServer(
  { app, clock }: ServerContext,
  options: McpServerOptions,
): McpServer {
  return {
    options,
    info: { name: options.name ?? 'waymark', version: options.version ?? '1' },
    states: createRequestStates(options, clock),
    dialogs: createDialogs(clock),
    offered: () => offeredAgents(app, options),
  };
}

export interface McpRequest extends McpServer {
  readonly era: Era;
  readonly id: RequestId;
  readonly method: string;
  readonly params: Fields;
  readonly c: RequestContext;
}

export interface Method {
  /** The era that has it; absent: both. */
  readonly only?: 'modern' | 'legacy';
  run(request: McpRequest): Promise<Fields>;
}

/** The token under which the caller wants to hear of progress. */
export function progressTokenOf({ params }: McpRequest): RequestId | undefined {
  const meta = params._meta as { readonly progressToken?: unknown } | null | undefined;
  const token = meta?.progressToken;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** A result with the fields that its era asks for. */
export function inEra({ info, era }: McpRequest, result: Fields): Fields {
  if (era.kind === 'legacy') return result;
  const meta = result._meta as Fields | undefined;
  return { resultType: 'complete', ...result, _meta: { ...meta, [serverInfoKey]: info } };
}

/** Whose dialog: a caller, and the session that it began with `initialize`. */
interface Peer {
  readonly principal: string | undefined;
  readonly session: string | undefined;
}

/** Open questions and calls between this process and clients of the 2025 revisions. */
interface Dialogs {
  /** Asks a client; the request with this id goes out on the stream of the call that asks. */
  ask(peer: Peer, signal: AbortSignal): { readonly id: string; readonly reply: Promise<RpcReply> };
  /** Passes on the answer of a client; one to a question that this client was not asked is dropped. */
  answer(peer: Peer, reply: RpcReply): void;
  /** Lets `notifications/cancelled` end a call; the returned function forgets it. */
  enter(peer: Peer, id: RequestId, cancel: () => void): () => void;
  cancel(peer: Peer, id: unknown): void;
}

function createDialogs(clock: Clock): Dialogs {
  const questions = new Map<string, (reply: RpcReply) => void>();
  const calls = new Map<string, () => void>();
  const keyOf = ({ principal, session }: Peer, id: unknown): string =>
    JSON.stringify([principal ?? null, session ?? null, id]);
  return {
    ask(peer, signal) {
      const id = uuidv7(clock.now());
      const key = keyOf(peer, id);
      const { promise, resolve } = Promise.withResolvers<RpcReply>();
      questions.set(key, resolve);
      const reply = raceSignal(promise, signal).finally(() => questions.delete(key));
      reply.catch(() => {});
      return { id, reply };
    },
    answer(peer, reply) {
      questions.get(keyOf(peer, reply.id))?.(reply);
    },
    enter(peer, id, cancel) {
      const key = keyOf(peer, id);
      // Ids of several clients without a session may be the same.
      if (peer.session === undefined) return () => {};
      if (calls.has(key)) {
        throw invalid('A request with this id is still running.');
      }
      calls.set(key, cancel);
      return () => {
        if (calls.get(key) === cancel) calls.delete(key);
      };
    },
    cancel(peer, id) {
      calls.get(keyOf(peer, id))?.();
    },
  };
}

/** The subject of a question to the user. */
const asked = v.object({ agent: v.string(), sessionId: v.string(), snapshotId: v.string() });
export interface Asked extends v.InferOutput<typeof asked> {}

/**
 * The state that a client holds while its user answers. It names the interrupted snapshot, and is signed for one owner, so
 * that a client can only answer what it was asked.
 */
interface RequestStates {
  sign(subject: Asked, owner: string | undefined): string;
  /** The subject of the question; INVALID_ARGUMENT for a state that this server did not give to this owner, or that is too old. */
  open(state: string, owner: string | undefined): Asked;
}

/** Milliseconds for which a question can be answered. */
const maxAge = 7 * 24 * 60 * 60 * 1000;

function createRequestStates({ secret }: McpServerOptions, clock: Clock): RequestStates {
  const secrets = secret === undefined ? [randomSecret()] : [secret].flat();
  const macOf = (key: string, payload: string, owner: string | undefined): string =>
    hmacSha256(key, JSON.stringify(['waymark.mcp.1', owner ?? null, payload]), 'base64url');
  return {
    sign({ agent, sessionId, snapshotId }, owner) {
      const payload = toBase64Url(JSON.stringify([clock.now(), agent, sessionId, snapshotId]));
      return `${payload}.${macOf(secrets[0] ?? '', payload, owner)}`;
    },
    open(state, owner) {
      const [payload = '', mac = ''] = state.split('.', 2);
      if (!secrets.some((key) => timingSafeEqual(mac, macOf(key, payload, owner))))
        throw notGiven();
      const [time, agent, sessionId, snapshotId] = JSON.parse(fromBase64Url(payload));
      if (clock.now() - Number(time) > maxAge) throw notGiven();
      return v.parse(asked, { agent, sessionId, snapshotId });
    },
  };
}

function notGiven(): WaymarkError {
  return invalid(
    'This request state is not valid here, or too old. Call the tool again; with the sessionId it continues the conversation.',
  );
}

/**
 * Clients of the 2025 revisions declare their capabilities once, with `initialize`. The id of their session carries what the
 * server needs of them, so that no process has to remember it: a call may come to another process, or after a restart. The
 * id gives no access to anything.
 */
const form = /^(e|n)-[0-9a-f-]{36}$/;

/** The id of a new session of a client with these capabilities. */
export function newLegacySession(c: RequestContext, capabilities: Fields): string {
  return `${canFillForms(capabilities) ? 'e' : 'n'}-${uuidv7(c.get('server').clock.now())}`;
}

/** Who sends this request; a session id that this server never gives is unknown. */
export function peerOf(c: RequestContext): Peer {
  const session = headerOf(c, 'mcp-session-id');
  if (session !== undefined && !form.test(session)) {
    throw new RpcError(
      codes.refused,
      'There is no such session. Begin a new one with initialize.',
      { httpStatus: 404 },
    );
  }
  return { principal: c.get('caller').principal, session };
}

/** Whether a client can be asked in the middle of a call. */
export function canBeAsked({ session }: Peer): boolean {
  return session?.startsWith('e') ?? false;
}

/** Whether a client shows forms to its user; one that names no mode of elicitation does. */
export function canFillForms({ elicitation }: Fields): boolean {
  if (typeof elicitation !== 'object' || elicitation === null) return false;
  return 'form' in elicitation || !('url' in elicitation);
}
