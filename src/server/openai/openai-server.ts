import type { Agent } from '../../agent/contract/agent.ts';
import { createAgent, internalsOf } from '../../agent/define/create-agent.ts';
import { signState } from '../../agent/persistence/client-state.ts';
import { clientTurnStore } from '../../agent/persistence/turn-store.ts';
import { isWaymarkError } from '../../core/error.ts';
import { uuidv7 } from '../../core/id.ts';
import type { Message } from '../../protocol/message.ts';
import type { Operation } from '../../protocol/routes.ts';
import { type State, state as stateShape } from '../../protocol/state.ts';
import type { Store } from '../../store/contract/store.ts';
import { short } from '../http/answer.ts';
import type { Caller } from '../http/auth.ts';
import { parseText } from '../http/body.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import { fromBase64Url, randomSecret, toBase64Url } from '../http/secret.ts';
import { hasStore } from '../http/served-app.ts';
import {
  type OpenCall,
  openAgentCall,
  paramOf,
  type RequestContext,
  type ServerContext,
} from '../http/server-context.ts';
import { badRequest, unknownId } from './errors.ts';
import { snapshotOfResponse } from './items.ts';

export interface OpenAiServer {
  readonly options: OpenAiServerOptions;
  /** Seconds since 1970. */
  readonly startedAt: number;
  agents(): readonly Agent[];
  /** An offered agent by the name of its model, or `NOT_FOUND`. */
  agent(model: string): Agent;
  /** The same agent, whose state the client holds. */
  held(agent: Agent): Agent;
  newId(): string;
}

export interface OpenAiRequest extends OpenAiServer {
  readonly c: RequestContext;
  readonly caller: Caller;
}

export type Handler = (request: OpenAiRequest) => Promise<Response>;

export function createOpenAiServer(
  { app, clock }: ServerContext,
  options: OpenAiServerOptions,
): OpenAiServer {
  const agents = (): readonly Agent[] =>
    app.agents().filter(({ name }) => options.agents?.includes(name) ?? true);
  return {
    options,
    startedAt: Math.floor(clock.now() / 1000),
    agents,
    agent(model) {
      const agent = agents().find(({ name }) => name === model);
      if (agent) return agent;
      throw unknownId(`The model ${short(model)} does not exist here.`, 'model_not_found', 'model');
    },
    held: createHeldAgents(options),
    newId: () => uuidv7(clock.now()),
  };
}

export type FullStore = Store & Required<Pick<Store, 'timeline'>>;

/** The store of an agent, if it can list sessions. */
export function fullStoreOf(agent: Agent): FullStore | undefined {
  const { store } = internalsOf(agent).spec;
  return store?.timeline && (store as FullStore);
}

export interface ResponseCall extends OpenCall {
  readonly snapshotId: string;
}

/** Finds the response that the path names. One of another owner is unknown. */
export async function openResponse(
  { agents, c, caller }: OpenAiRequest,
  operation: Operation,
): Promise<ResponseCall> {
  const id = paramOf(c, 'response');
  const snapshotId = snapshotOfResponse(id);
  if (snapshotId === undefined) throw unknownResponse(id);
  for (const agent of agents().filter(hasStore)) {
    const sessionId = await c.get('server').sessionOf(agent, snapshotId, caller);
    if (sessionId === undefined) continue;
    const open = await openAgentCall(c, { agent, operation, snapshotId });
    return { ...open, snapshotId };
  }
  throw unknownResponse(id);
}

export function unknownResponse(id: string): Error {
  return unknownId(`There is no response ${short(id)} here.`, 'response_not_found');
}

/**
 * Agents whose state the client holds. An agent with a store gets a twin without one: the same in all else. Its state is signed
 * for one owner, and its store records which interrupts were answered.
 */
function createHeldAgents(options: OpenAiServerOptions): OpenAiServer['held'] {
  const { secret = randomSecret() } = options;
  const known = new WeakMap<Agent, Agent>();
  return (agent) => {
    const { spec, host } = internalsOf(agent);
    const { store } = spec;
    if (store === undefined && spec.clientState !== undefined) return agent;
    const clientState = { secret, bindOwner: true, ...(store && { replayGuard: store }) };
    const twin =
      known.get(agent) ??
      createAgent({ ...spec, store: undefined, turnStore: clientTurnStore, clientState }, host);
    known.set(agent, twin);
    return twin;
  };
}

/** A signed state as clients hold it. It is not encrypted. */
export function fromState(state: State): string {
  return toBase64Url(JSON.stringify(state));
}

/** The state that a client has held. Whether it was changed is checked where the turn begins. */
export async function toState(held: string, c: RequestContext): Promise<State> {
  const { limits } = c.get('server');
  try {
    const text = fromBase64Url(held);
    return await parseText(stateShape, text, { what: 'state', limits });
  } catch (error) {
    const why = isWaymarkError(error) ? ` ${error.message}` : '';
    throw badRequest(
      `The encrypted_content of a reasoning item is not a state that this server gave out. Send it back unchanged.${why}`,
      { param: 'input', code: 'invalid_encrypted_content' },
    );
  }
}

/** A state that begins with messages of the caller, signed, so that the agent takes it. */
export function stateWith(
  held: Agent,
  messages: readonly Message[],
  owner: string | undefined,
): State {
  const { spec, host } = internalsOf(held);
  const state = { sessionId: host.newId(), messages: [...messages] };
  if (spec.clientState === undefined) return state;
  const subject = { agent: spec.name, owner, now: host.clock.now() };
  return { ...state, seal: signState(spec.clientState, subject, state) };
}
