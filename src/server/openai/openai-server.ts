import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { fullStore } from '../../agent/spec/spec.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { Store } from '../../store/contract/store.ts';
import { short } from '../http/errors.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import {
  type OpenCall,
  openAgentCall,
  type RequestContext,
  type ServerContext,
} from '../http/server-context.ts';
import { unknownId } from './errors.ts';
import { createHeldAgents } from './held-agent.ts';
import { snapshotOfResponse } from './ids.ts';

/** What all requests of the OpenAI endpoints share. */
export interface OpenAiServer {
  readonly serverContext: ServerContext;
  readonly options: OpenAiServerOptions;
  /** Seconds since 1970. */
  readonly startedAt: number;
  /** The agents that are offered as models. */
  agents(): readonly Agent[];
  /** An offered agent by the name of its model, or `NOT_FOUND`. */
  agent(model: string): Agent;
  /** The same agent, whose state the client holds. */
  held(agent: Agent): Agent;
}

export function createOpenAiServer(
  serverContext: ServerContext,
  options: OpenAiServerOptions,
): OpenAiServer {
  const { app, clock } = serverContext;
  const agents = (): readonly Agent[] =>
    app.agents().filter(({ name }) => options.agents?.includes(name) ?? true);
  return {
    serverContext,
    options,
    startedAt: Math.floor(clock.now() / 1000),
    agents,
    agent(model) {
      const agent = agents().find(({ name }) => name === model);
      if (agent) return agent;
      throw unknownId(`The model ${short(model)} does not exist here.`, 'model_not_found', 'model');
    },
    held: createHeldAgents(options),
  };
}

/** Whether the sessions of an agent are in a store. */
export function hasStore({ metadata }: Agent): boolean {
  return metadata.stateManagement === 'server';
}

/** The store of an agent, if it can list sessions. */
export function fullStoreOf(agent: Agent): (Store & Required<Pick<Store, 'timeline'>>) | undefined {
  const store = fullStore(internalsOf(agent).spec);
  return store?.timeline && (store as Store & Required<Pick<Store, 'timeline'>>);
}

/** A call that is about a stored response. */
export interface ResponseCall extends OpenCall {
  readonly snapshotId: string;
}

/** Finds the response that the path names. One of another owner is unknown. */
export async function openResponse(
  openai: OpenAiServer,
  c: RequestContext,
  operation: Operation,
): Promise<ResponseCall> {
  const id = c.req.param('response') ?? '';
  const snapshotId = snapshotOfResponse(id);
  const { serverContext } = openai;
  for (const agent of snapshotId === undefined ? [] : openai.agents().filter(hasStore)) {
    if (snapshotId === undefined) break;
    const sessionId = await serverContext.sessionOf(agent, snapshotId, c.get('caller'));
    if (sessionId === undefined) continue;
    const open = await openAgentCall(serverContext, c, { agent, operation, snapshotId });
    return { ...open, snapshotId };
  }
  throw unknownResponse(id);
}

/** The error for a response that this caller does not have. */
export function unknownResponse(id: string): Error {
  return unknownId(`There is no response ${short(id)} here.`, 'response_not_found');
}
