import type { EditChange } from '../../api/agent-api.ts';
import type { Json } from '../../core/json/json.ts';
import type { Lookup } from '../../protocol/ids.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Input } from '../../protocol/turn.ts';
import type { SessionFilter } from '../../store/contract/store.ts';
import type { ScriptedReply } from '../scripted-model.ts';
import type { ContractAgentName } from './agents.ts';

/**
 * One test case as data: the rules of docs/semantics.md it covers, the replies of the model, and the steps with their expected
 * results. Strings that begin with `$` refer to a value that an earlier step has saved: `$first.snapshotId`.
 */
export interface ContractCase {
  readonly name: string;
  readonly rules: readonly string[];
  readonly agent: ContractAgentName;
  /** The replies of the model, call by call. @default none */
  readonly script?: readonly ScriptedReply[];
  readonly steps: readonly Step[];
}

/**
 * The pattern of an expected value. Objects may have more properties than the pattern, arrays must have the same length.
 * `{ $absent: true }`: missing. `{ $any: true }`: present. `{ $told: […] }`: messages as `role: text`. `{ $not: … }`: no match.
 */
export type Pattern = Json;

/** Expects a call to be rejected. */
export interface Refusal {
  readonly status: string;
  readonly details?: { readonly [name: string]: Json };
}

/** Where a turn starts; the state may be a saved one. */
export interface StepInit {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly state?: State | string;
  readonly from?: null;
  readonly ifHead?: string | null;
}

/** A string is a user message. */
export type StepInput = string | Input;

interface Refusable {
  readonly refused?: Refusal;
}

/** Single turns. */
interface RunStep extends Refusable {
  readonly do: 'run' | 'stream';
  readonly input: StepInput;
  readonly at?: StepInit;
  /** Saves the output under this name. */
  readonly as?: string;
  readonly output?: Pattern;
  /** All chunks of the turn, adjacent text joined; with `stream` only. */
  readonly chunks?: readonly Pattern[];
}

/** Steps on a connection. */
type ConnectionStep =
  | { readonly do: 'open'; readonly connection: string; readonly at?: StepInit }
  | ({
      readonly do: 'send';
      readonly connection: string;
      readonly input: StepInput;
    } & Refusable)
  /** Several at once, without waiting in between. */
  | {
      readonly do: 'sendAll';
      readonly connection: string;
      readonly inputs: readonly StepInput[];
    }
  /** Reads up to a matching chunk. */
  | {
      readonly do: 'receive';
      readonly connection: string;
      readonly until: Pattern;
      readonly as?: string;
      readonly chunks?: readonly Pattern[];
    }
  | { readonly do: 'abort' | 'close'; readonly connection: string }
  | ({
      readonly do: 'detach';
      readonly connection: string;
      readonly input?: StepInput;
      readonly as?: string;
      readonly output?: Pattern;
    } & Refusable)
  | ({
      readonly do: 'output';
      readonly connection: string;
      readonly as?: string;
      readonly output?: Pattern;
    } & Refusable);

/** Read steps. */
type ReadStep =
  | {
      readonly do: 'getSnapshot';
      readonly at: Lookup;
      /** `null`: it is unknown. */
      readonly snapshot: Pattern;
      readonly as?: string;
    }
  | {
      readonly do: 'listSnapshots';
      readonly sessionId: string;
      readonly includeOrphaned?: boolean;
      readonly snapshots: readonly Pattern[];
    }
  | { readonly do: 'getSession'; readonly sessionId: string; readonly session: Pattern }
  /** The sessions of a list, by their titles, in any order. */
  | {
      readonly do: 'listSessions';
      readonly filter: SessionFilter;
      readonly titles: readonly string[];
    }
  | { readonly do: 'wait'; readonly id: string; readonly snapshot: Pattern }
  /** All events to the end, adjacent text joined. */
  | {
      readonly do: 'watch';
      readonly id: string;
      readonly after?: string;
      readonly events: readonly Pattern[];
      readonly as?: string;
    }
  /** `watch` with an invalid event id. */
  | { readonly do: 'badCursors'; readonly id: string }
  /** The session of a `Chat` before its first turn (`null`: none), and after each input. */
  | {
      readonly do: 'chat';
      readonly at?: StepInit;
      readonly inputs: readonly StepInput[];
      readonly sessionIds: readonly Pattern[];
    }
  | { readonly do: 'diff'; readonly from: string; readonly to: string; readonly diff: Pattern };

/** Steps that change the timeline. */
type TimelineStep =
  | ({
      readonly do: 'restore' | 'fork';
      readonly id: string;
      readonly ifHead?: string;
      readonly as?: string;
      readonly snapshot?: Pattern;
    } & Refusable)
  | ({
      readonly do: 'edit';
      readonly id: string;
      readonly change: EditChange;
      readonly reason?: string;
      readonly ifHead?: string;
      readonly as?: string;
      readonly snapshot?: Pattern;
    } & Refusable)
  | ({
      readonly do: 'label';
      readonly id: string;
      readonly label: string | null;
      readonly ifHead?: string;
    } & Refusable)
  | {
      readonly do: 'updateSession';
      readonly sessionId: string;
      readonly change: { readonly title?: string | null };
      readonly session: Pattern;
    }
  | ({
      readonly do: 'deleteSession';
      readonly sessionId: string;
      readonly deleted?: boolean;
    } & Refusable)
  | {
      readonly do: 'abortSnapshot';
      readonly id: string;
      /** `null`: the id is unknown. */
      readonly status: SnapshotStatus | null;
    };

/** Steps about the model and the process. */
type StageStep =
  /** Every method that takes an id rejects values that are not strings; `id` is a snapshot to compare with. */
  | { readonly do: 'badIds'; readonly id: string }
  /** Handles of background runs remember their owner; `refs`: calls take outputs, snapshots and ids. */
  | { readonly do: 'handles' | 'refs' }
  /** The last request to the model: its messages, how many there were so far, and the names of its tools. */
  | {
      readonly do: 'asked';
      readonly told: readonly string[];
      readonly calls?: number;
      readonly tools?: readonly string[];
    }
  /** How many model calls have been aborted so far. */
  | { readonly do: 'stopped'; readonly times: number }
  /** Replaces the process with another one on the same store. */
  | { readonly do: 'restart' };

/** An action and its expected result. */
export type Step = RunStep | ConnectionStep | ReadStep | TimelineStep | StageStep;
