import type { Json } from '../../core/json/json.ts';
import type { Lookup } from '../../protocol/lookup.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Input } from '../../protocol/turn.ts';
import type { ScriptedReply } from '../scripted-model.ts';
import type { ContractAgentName } from './agents.ts';

/**
 * One promise about agents, as data: which rules of docs/semantics.md it holds, what the model says, and what is done and
 * expected step by step. Strings that begin with `$` stand for what an earlier step has kept: `$first.snapshotId`.
 */
export interface ContractCase {
  readonly name: string;
  readonly rules: readonly string[];
  readonly agent: ContractAgentName;
  /** What the model answers, call by call. @default it answers nothing */
  readonly script?: readonly ScriptedReply[];
  readonly steps: readonly Step[];
}

/**
 * What is expected of a value: objects may have more than the pattern says, arrays may not. `{ $absent: true }`: is not there.
 * `{ $any: true }`: is there. `{ $told: […] }`: messages that say this, as `role: text`. `{ $not: … }`: anything else.
 */
export type Pattern = Json;

/** Expects a call to be refused. */
export interface Refusal {
  readonly status: string;
  readonly details?: { readonly [name: string]: Json };
}

/** Where a turn starts; the state may be one that was kept. */
export interface StepInit {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly state?: State | string;
  readonly ifHead?: string | null;
}

/** A text is a user's message. */
export type StepInput = string | Input;

interface Refusable {
  readonly refused?: Refusal;
}

/** A turn by itself. */
interface RunStep extends Refusable {
  readonly do: 'run' | 'stream';
  readonly input: StepInput;
  readonly at?: StepInit;
  /** Keeps the output under this name. */
  readonly as?: string;
  readonly output?: Pattern;
  /** All chunks of the turn, adjacent text joined; with `stream` only. */
  readonly chunks?: readonly Pattern[];
}

/** On a connection. */
type ConnectionStep =
  | { readonly do: 'open'; readonly connection: string; readonly at?: StepInit }
  | ({
      readonly do: 'send';
      readonly connection: string;
      readonly input: StepInput;
    } & Refusable)
  /** Several at once, none waiting for the one before. */
  | {
      readonly do: 'sendAll';
      readonly connection: string;
      readonly inputs: readonly StepInput[];
    }
  /** Reads up to a chunk that fits. */
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

/** Reading. */
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
  | { readonly do: 'wait'; readonly id: string; readonly snapshot: Pattern }
  /** All events to the end, adjacent text joined. */
  | {
      readonly do: 'watch';
      readonly id: string;
      readonly after?: string;
      readonly events: readonly Pattern[];
      readonly as?: string;
    }
  /** A watcher that starts after something that is not an event id. */
  | { readonly do: 'badCursors'; readonly id: string }
  /** A chat: the session it shows before its first turn (`null`: none), and after each of these inputs. */
  | {
      readonly do: 'chat';
      readonly at?: StepInit;
      readonly inputs: readonly StepInput[];
      readonly sessionIds: readonly Pattern[];
    }
  | { readonly do: 'diff'; readonly from: string; readonly to: string; readonly diff: Pattern };

/** Changing the timeline. */
type TimelineStep =
  | ({
      readonly do: 'restore' | 'fork';
      readonly id: string;
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

/** About the model and the process. */
type StageStep =
  /** Every call that takes an id refuses what is not a string; `id` is a snapshot to compare with. */
  | { readonly do: 'badIds'; readonly id: string }
  /** What the model was asked last. */
  | { readonly do: 'asked'; readonly told: readonly string[]; readonly calls?: number }
  /** How often the model's answer was stopped so far. */
  | { readonly do: 'stopped'; readonly times: number }
  /** Another process on the same store takes the place of this one. */
  | { readonly do: 'restart' };

/** One thing that is done, and what is expected of it. */
export type Step = RunStep | ConnectionStep | ReadStep | TimelineStep | StageStep;
