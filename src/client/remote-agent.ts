import type { AgentApi, ApiCallOptions, ApiInvokeOptions } from '../api/agent-api.ts';
import type { AgentTypes, FailureOptions, RequestOptions, WireTypes } from '../api/types.ts';
import type { AgentInfo } from '../protocol/requests.ts';

/** Options of every call to a server. Owner and context come from the server's authentication, not from the client. */
export interface RemoteCallOptions extends ApiCallOptions {}

/** Options of a turn. */
export interface RemoteInvokeOptions<Types extends AgentTypes = WireTypes>
  extends ApiInvokeOptions<Types> {}

/** Options of one turn, including its request id. */
export interface RemoteRunOptions<Types extends AgentTypes = WireTypes>
  extends RemoteInvokeOptions<Types>,
    RequestOptions,
    FailureOptions {}

/**
 * An agent on a server: the calls of `Agent`, over HTTP. It has `describe()` instead of `metadata`, and no `context`,
 * `model` and `owner`, which are set on the server.
 */
export interface RemoteAgent<Types extends AgentTypes = WireTypes>
  extends AgentApi<Types, RemoteCallOptions, RemoteInvokeOptions<Types>> {
  /** The agent, and the capabilities of its store. */
  describe(options?: RemoteCallOptions): Promise<AgentInfo>;
}

/** The types of an agent: `TypesOf<typeof chat>`. */
export type TypesOf<A> = A extends { readonly '~types'?: infer Types extends AgentTypes }
  ? Types
  : WireTypes;
