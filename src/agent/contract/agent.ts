import type { AgentApi, ApiCallOptions, ApiInvokeOptions } from '../../api/agent-api.ts';
import type { SnapshotRef } from '../../api/turn-values.ts';
import type { AgentTypes, FailureOptions, RequestOptions, WireTypes } from '../../api/types.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Lookup } from '../../protocol/ids.ts';
import type { SkippedPath } from '../../workspace/contract/contract.ts';
import type { QueueOptions } from './dispatcher.ts';

/** Options of every call. */
export interface CallOptions extends ApiCallOptions {
  /** The owner of the sessions: the id of a user or tenant. Ids of other owners are unknown. */
  readonly owner?: string;
  /**
   * Input and state come from a remote client: provider options in their metadata are dropped, so that only your code sets them. A
   * server sets it. @default false
   */
  readonly remote?: boolean;
  /** Plain JSON for a `workspace` that is a function: see `restore` and `checkout`. For turns, also for tools and handlers. */
  readonly context?: JsonObject;
}

/** Options of calls that run turns. */
export interface InvokeOptions<Types extends AgentTypes = WireTypes>
  extends ApiInvokeOptions<Types>,
    CallOptions {
  /** Plain JSON for tools and handlers. It is stored with a detached run, so do not put secrets in it. */
  readonly context?: JsonObject;
  /** Overrides the agent's model for this call. */
  readonly model?: ModelRef;
  /**
   * Lets another process continue this turn if this one dies, and keeps its events in the store, so that it can be watched from
   * anywhere. A server sets it for the turns it accepts. @default false
   */
  readonly accept?: boolean;
  /** Priority and delay of a run that is detached from the start, if the app's engine has a queue. */
  readonly queue?: QueueOptions;
}

/** Options of a call that runs one turn. */
export interface RunOptions<Types extends AgentTypes = WireTypes>
  extends InvokeOptions<Types>,
    RequestOptions,
    FailureOptions {}

/** The capabilities of an agent and its store, for user interfaces. */
interface AgentMetadata {
  /** Whether the store or the client holds the state. */
  readonly stateManagement: 'server' | 'client';
  /** Whether other processes can abort its runs. */
  readonly abortable: boolean;
  /** Whether it can run in the background. */
  readonly detachable: boolean;
  /** Whether other processes can watch its runs. */
  readonly watchable: boolean;
  /** Whether sessions and snapshots can be listed, restored, forked and compared. */
  readonly timeline: boolean;
  /** Whether two turns at once on one session are kept apart. */
  readonly claims: boolean;
  /** Whether messages can be added to a running turn. */
  readonly steerable: boolean;
  /** Whether a `requestId` keeps an input that is sent again from being run twice. */
  readonly requestIds: boolean;
  /** The name of the store. */
  readonly store?: string;
  /** The name of its memory. */
  readonly memory?: string;
  /** JSON Schema of the custom state. */
  readonly stateSchema?: JsonSchema;
}

/** A named, typed conversational actor of this process. A client has the same calls over HTTP. */
export interface Agent<Types extends AgentTypes = WireTypes>
  extends AgentApi<Types, CallOptions, InvokeOptions<Types>> {
  /** Describes the agent to users and to models that can call it. */
  readonly description?: string;
  /** The capabilities of the agent and its store. */
  readonly metadata: AgentMetadata;
  /**
   * Writes the files of a snapshot, or of the head of a session, into a folder that is new or empty. Paths that this system cannot have are
   * listed.
   *
   * @example
   * await coder.checkout(output, './elsewhere');
   */
  checkout(
    snapshot: SnapshotRef | Lookup,
    folder: string,
    options?: CallOptions,
  ): Promise<{ readonly skipped: readonly SkippedPath[] }>;
}
