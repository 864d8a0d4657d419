import type { AgentApi, ApiCallOptions, ApiInvokeOptions } from '../api/agent-api.ts';
import type { AgentTypes, FailureOptions, RequestOptions, WireTypes } from '../api/types.ts';
import type { AgentInfo } from '../protocol/requests.ts';

/** Options of one turn, including its request id. */
export interface RemoteRunOptions<Types extends AgentTypes = WireTypes>
  extends ApiInvokeOptions<Types>,
    RequestOptions,
    FailureOptions {}

/**
 * An agent on a server: the calls of `Agent`, over HTTP. It has `describe()` instead of `metadata`, and no `context`,
 * `model` and `owner`, which are set on the server.
 */
export interface RemoteAgent<Types extends AgentTypes = WireTypes> extends AgentApi<Types> {
  /** The agent, and the capabilities of its store. */
  describe(options?: ApiCallOptions): Promise<AgentInfo>;
}

/** The types of an agent: `TypesOf<typeof chat>`. */
export type TypesOf<A> = A extends { readonly '~types'?: infer Types extends AgentTypes }
  ? Types
  : WireTypes;
