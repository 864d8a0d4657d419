import type { ApiCallOptions, PendingInterrupts } from '../api/agent-api.ts';
import { withInterrupts } from '../api/calls.ts';
import type { AgentTypes, WireTypes } from '../api/types.ts';
import type { AgentInfo, WaitingSession } from '../protocol/requests.ts';
import type { Page } from '../protocol/session.ts';
import type { ListOptions } from '../store/contract/store.ts';
import { createRemoteAgent } from './create-remote-agent.ts';
import { type ClientOptions, checkClientOptions } from './options.ts';
import type { RemoteAgent, TypesOf } from './remote-agent.ts';
import { createTransport } from './transport.ts';

/** Anything that has the types of an agent: `typeof chat`. */
export interface Typed<Types extends AgentTypes = AgentTypes> {
  /** For type inference only; it has no value. */
  readonly '~types'?: Types;
}

/** A client of a server and its agents. */
export interface Client {
  /** The agents on the server, and what their stores can do. */
  agents(options?: ApiCallOptions): Promise<readonly AgentInfo[]>;
  /** The sessions of all agents that wait for the answer of a person, newest first. Answer with `client.agent(item.agent).resume(item, …)`. */
  listInterrupts(options?: ApiCallOptions & ListOptions): Promise<Page<PendingInterrupts>>;
  /**
   * An agent by its name; nothing is sent before it is used. `client.agent<typeof chat>('chat')` has the types of
   * `chat`, which is imported as a type only.
   */
  agent<A extends Typed = Typed<WireTypes>>(name: string): RemoteAgent<TypesOf<A>>;
}

/**
 * Creates a client of the server at `url`. It keeps no connection open between calls, so there is nothing to close.
 *
 * @example
 * const { agent } = createClient({ url: 'https://agents.example.com' });
 * const chat = agent<typeof chatAgent>('chat');
 */
export function createClient(options: ClientOptions): Client {
  checkClientOptions(options);
  const transport = createTransport(options);
  return {
    async agents({ signal } = {}) {
      const request = { operation: 'listAgents', signal } as const;
      const { items } = await transport.json<{ items: readonly AgentInfo[] }>(request);
      return items;
    },
    async listInterrupts({ signal, limit, cursor } = {}) {
      const request = { operation: 'listAllInterrupts', query: { limit, cursor }, signal } as const;
      const { items, ...page } = await transport.json<Page<WaitingSession>>(request);
      return { ...page, items: items.map(withInterrupts) };
    },
    agent: (name) => createRemoteAgent(transport, name, options.transport ?? 'http'),
  };
}

/**
 * One agent of a server.
 *
 * @example
 * const chat = client<typeof chatAgent>({ url: '/agents', agent: 'chat' });
 * const { sessionId } = await chat.run('Hello');
 */
export function client<A extends Typed = Typed<WireTypes>>({
  agent,
  ...options
}: ClientOptions & { readonly agent: string }): RemoteAgent<TypesOf<A>> {
  return createClient(options).agent<A>(agent);
}
