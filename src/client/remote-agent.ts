import type { AgentApi, ApiCallOptions, ApiInvokeOptions } from '../api/agent-api.ts';
import type { AgentTypes, FailureOptions, RequestOptions, WireTypes } from '../api/types.ts';
import type { AgentInfo } from '../protocol/requests.ts';

/** What every call to a server takes. Owner and context come from the server's authentication, not from the client. */
export interface RemoteCallOptions extends ApiCallOptions {}

/** Where a turn starts. */
export interface RemoteInvokeOptions<Types extends AgentTypes = WireTypes>
  extends ApiInvokeOptions<Types> {}

/** Where one turn starts, and the id under which it may be sent again. */
export interface RemoteRunOptions<Types extends AgentTypes = WireTypes>
  extends RemoteInvokeOptions<Types>,
    RequestOptions,
    FailureOptions {}

/**
 * An agent on a server: the calls of `Agent`, over HTTP. It has no `metadata` at once and no `context`, `model` and `owner`,
 * which only the agent's own process can give.
 */
export interface RemoteAgent<Types extends AgentTypes = WireTypes>
  extends AgentApi<Types, RemoteCallOptions, RemoteInvokeOptions<Types>> {
  /** What the agent is and what its store can do. */
  describe(options?: RemoteCallOptions): Promise<AgentInfo>;
}

/** The types of an agent, read off the agent: `TypesOf<typeof chat>`. */
export type TypesOf<A> = A extends { readonly '~types'?: infer Types extends AgentTypes }
  ? Types
  : WireTypes;
