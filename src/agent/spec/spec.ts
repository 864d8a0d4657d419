import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Schema } from '../../core/schema/schema.ts';
import type { Limits } from '../../generate/limits.ts';
import type { ModelRef } from '../../generate/model.ts';
import { checkId } from '../../protocol/lookup.ts';
import type { Message } from '../../protocol/message.ts';
import type { AgentInfo } from '../../protocol/requests.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Chunk, Input } from '../../protocol/turn.ts';
import type { SnapshotPolicy } from '../../session/policy.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Scope, SnapshotStore, Store } from '../../store/contract/store.ts';
import type { ClientStateOptions } from './client-state.ts';
import type { TurnLoopHandler } from './handler.ts';
import type { TurnStore } from './turn-store.ts';

/** What happens to a turn on a busy session. */
export type Concurrency = 'reject' | 'wait' | 'fork';

/** Changes what clients receive. The handler, the tools and the store see the original. */
export interface Transform {
  /** Gets a copy of the state; return `undefined` to omit it. */
  readonly state?: (state: State) => State | undefined;
  /** Gets a copy of the chunk; return `undefined` to omit it. `turnStart`, `snapshotCreated` and `turnEnd` are always sent. */
  readonly chunk?: (chunk: Chunk) => Chunk | undefined;
}

/** Limits of a turn, and of a session along its path. */
export interface AgentLimits {
  /** Custom agents keep `timeout`, `tokens` and `toolCalls`; the others are those of their own `generate` calls. */
  readonly turn?: Limits;
  readonly session?: {
    readonly tokens?: number;
    readonly toolCalls?: number;
    /** Characters of the custom state as JSON. @default 16777216 */
    readonly customLength?: number;
  };
}

/** The end of a detached run, as passed to `onFinish`. */
export interface RunEnd {
  readonly agent: string;
  readonly owner?: string;
  readonly snapshot: Snapshot;
}

/** An agent as the turn loop knows it: every option checked and filled in. */
export interface AgentSpec {
  readonly name: string;
  readonly description?: string;
  readonly version?: string;
  /** Where a second attempt of a turn starts: at its last tool iteration, or over. */
  readonly recovery: 'checkpoint' | 'restart';
  readonly store: Store | SnapshotStore | undefined;
  readonly turnStore: TurnStore;
  readonly policy: SnapshotPolicy;
  readonly concurrency: Concurrency;
  readonly limits: AgentLimits;
  /** The title of a session after its first turn; `undefined`: none. */
  titleOf(state: SessionState): string | undefined;
  readonly transform: Transform;
  /** The same transform, whose errors go to `report` instead of to the app. */
  transformReportingTo(report: (error: unknown) => void): Transform;
  /** How the state that clients hold is signed. */
  readonly clientState?: ClientStateOptions;
  readonly stateSchema?: Schema;
  readonly statusSchema?: Schema;
  readonly initialState?: Json;
  readonly upgradeState?: (custom: Json) => unknown;
  readonly handler: TurnLoopHandler;
  /** Throws when an input is not one for this agent. */
  checkInput(input: Input): void;
  /** Throws when the agent names something that does not exist; `model` is the one of the call. */
  checkSetup?(model: ModelRef | undefined): void;
  /** The messages that an input adds to a state at the start of its turn; rejects when it is no input for that state. */
  receive(state: SessionState, input: Input, context: JsonObject): Promise<readonly Message[]>;
  /** Its model, tools and output as they are now; absent where only its handler knows them. */
  describe?(): Promise<Pick<AgentInfo, 'model' | 'tools' | 'outputSchema'>>;
  /** The schema of its structured output alone, which needs no tool source. */
  outputSchema?(): Promise<JsonObject | undefined>;
  /** Rebuilds the parts of the context that are not JSON when a run is taken over. */
  readonly restoreContext?: (context: JsonObject) => JsonObject;
  readonly onFinish?: (end: RunEnd) => void | Promise<void>;
}

/** What a session's ids live under. */
export function scopeOf(spec: Pick<AgentSpec, 'name'>, owner: string | undefined): Scope {
  if (owner === undefined) return { agent: spec.name };
  checkId(owner, 'an owner');
  return { agent: spec.name, owner };
}

/** The store with its capabilities, when it has any. */
export function fullStore(spec: Pick<AgentSpec, 'store'>): Store | undefined {
  const { store } = spec;
  return store !== undefined && 'name' in store ? store : undefined;
}
