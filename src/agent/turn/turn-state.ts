import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { FinishReason, Input, Output, Usage } from '../../protocol/turn.ts';
import type { History } from '../../session/history.ts';
import { isSameState, type SessionState } from '../../session/session-state.ts';
import type { LoadedState, StateBase, TakenRun } from '../../store/contract/store.ts';
import type { WorkspaceFolder } from '../../workspace/contract/contract.ts';
import type { TurnInfo } from '../contract/handler.ts';
import type { TurnBase } from '../contract/turn-store.ts';
import type { EventLog } from '../persistence/event-log.ts';

export interface Turn {
  readonly info: TurnInfo;
  readonly input: Input;
  /** Its input is in the state already: a second attempt continues from a checkpoint, or the turn was steered. */
  continued: boolean;
  /** Whether the custom state has been sent as a whole in this turn. */
  customSent: boolean;
  /** The named artifacts that have been sent in this turn, as they were sent last. */
  artifactsSent?: Map<string, Artifact>;
  /** The turn function did not return in time after a stop, and the turn ended without it. */
  hasTimedOut: boolean;
  usage: Usage;
  output?: Json;
  toolCalls: number;
  /** How many messages of its generate call are in the state already. */
  generated: number;
  /** How many messages the turn added after its input before its present generate call: the index of the next one. */
  firstIndex: number;
  /** Whether there are snapshots within it, which are not the head before it has ended. */
  hasSnapshots: boolean;
  /** Its end was refused because of messages in its inbox. */
  isSteered: boolean;
  toolIterations: number;
  readonly snapshotIds: string[];
  /** How often each tool was called at each place, for keys that are the same on a second attempt. */
  toolKeys?: Map<string, number>;
  /** Names the client-held state whose interrupt this turn answers. */
  answeredKey?: string;
}

/** The files that a turn works on, in the workspace of its agent. */
export interface TurnFiles {
  /** The open folder, for tools. */
  readonly folder: WorkspaceFolder;
  /** Saves what others have changed, and gives the turn the files of the snapshot that it starts from. */
  start(run: ActiveRun): Promise<void>;
  /** Continues where the last checkpoint of another attempt was. */
  takeOver(run: ActiveRun, midTurn: boolean): Promise<void>;
  /** Stores the files as they are now, as part of the state. */
  capture(): Promise<void>;
  /** Releases the folder. If the turn failed that started from another snapshot than the head, the folder returns to the head's files. */
  close(options: { readonly failed: boolean }): Promise<void>;
}

export type Outcome =
  | { readonly kind: 'done'; readonly finishReason: FinishReason; readonly output?: Json }
  /** Not ended: messages were added to it, and the model has to answer them. */
  | { readonly kind: 'steered' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly error: WaymarkError }
  | { readonly kind: 'lost' }
  /** Another worker ended the run, with this output. */
  | { readonly kind: 'elsewhere'; readonly output: Output };

/** Whether a turn takes the messages of its inbox before it ends so. One that waits for an answer does not. */
export function waitsForSteering(outcome: Outcome): boolean {
  return outcome.kind === 'done' && outcome.finishReason !== 'interrupted';
}

/** How many messages a state has that the turn of an input added after its input. */
export function countAdded(history: History, { message }: Input): number {
  const isBefore = ({ role, metadata }: Message): boolean =>
    message === undefined
      ? metadata?.answered !== undefined
      : role === 'user' && metadata?.steered === undefined;
  for (let at = history.length - 1; at >= 0; at--) {
    const found = history.at(at);
    // The first message of a turn that answers an interrupt belongs to the turn.
    if (found && isBefore(found)) return history.length - at - (message === undefined ? 0 : 1);
  }
  return 0;
}

/** The last message that is not a tool's, and the tool messages after it: enough to find open tool requests. */
export function lastRound(history: History): readonly Message[] {
  let from = history.length - 1;
  while (from > 0 && history.at(from)?.role === 'tool') from--;
  return history.toArray(Math.max(0, from));
}

export function lostError(runId: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Another worker has taken over run "${runId}", or its session, so this process no longer runs it. Look the run up by its id.`,
    { details: { snapshotId: runId } },
  );
}

/** The run that is being worked on: one per turn, or one for all inputs that were queued when the caller detached. */
export interface ActiveRun {
  readonly runId: string;
  readonly turnBase: TurnBase;
  readonly log: EventLog;
  /** Stops renewing the run's claim. */
  readonly stopHeartbeat: () => void;
  readonly resumeHeartbeat: () => void;
  readonly steering: RunSteering;
  /** The idempotency keys that the run was claimed with. */
  readonly keys: readonly string[];
  /** For a detached run: how many inputs are done, whether the run has ended, and why its end could not be saved. */
  detached?: {
    inputsDone: number;
    /** Its final snapshot, if the run has ended together with its last turn. */
    ended?: Snapshot;
    over?: boolean;
    trouble?: unknown;
  };
  /** Called for each new checkpoint and durable step. */
  onProgress?: () => void;
}

export interface RunSteering {
  /** Whether there may be messages that the turn has not taken. */
  isHinted: boolean;
  /** Settles when a hint that has just come is looked up in the store. */
  looking?: Promise<void> | undefined;
  /** The messages of the inbox that the state has, each by its run and id. */
  readonly taken: Set<string>;
  /** Another worker had the run: its last checkpoint may have messages of the inbox, which was not read yet. */
  isUnread?: boolean;
}

/** The usage of a turn or an invocation; `undefined` if it used nothing. */
export function usageOf({ usage }: { readonly usage: Usage }): Usage | undefined {
  return Object.keys(usage).length > 0 ? usage : undefined;
}

export interface ListedState {
  readonly id: string;
  readonly state: SessionState;
}

/**
 * Where an invocation stands in the history of its session. A value: each transition below returns the next one.
 *
 * The states differ because a store can save a state without a snapshot, a turn can save snapshots before it ends, and a
 * turn can fail after it has saved some.
 */
export interface Lineage {
  /** The snapshot that the init named, as it was loaded before the claim. */
  readonly initBase: StateBase | undefined;
  /** The state that was saved last, with or without a snapshot. The next write is stored as a change of it. */
  readonly savedBase: StateBase | undefined;
  readonly nextParentId: string | undefined;
  /** The last snapshot on this branch. The snapshot policy compares the state with it. */
  readonly policyBase: ListedState | undefined;
  /** The state that the session continues from if the running turn fails. */
  readonly fallbackState: SessionState;
  /** The snapshot that has this state, if there is one. */
  readonly fallbackSnapshotId: string | undefined;
}

/** An invocation before its session is opened, or with a state that the client holds. */
export function startedWith(state: SessionState): Lineage {
  return {
    initBase: undefined,
    savedBase: undefined,
    nextParentId: undefined,
    policyBase: undefined,
    fallbackState: state,
    fallbackSnapshotId: undefined,
  };
}

/** The init named a snapshot, and it was loaded. Nothing is claimed yet. */
export function openedAt(loaded: LoadedState): Lineage {
  const { snapshotId, state } = loaded;
  return {
    ...startedWith(state),
    initBase: loaded,
    policyBase: listedState(loaded),
    fallbackSnapshotId: snapshotId,
  };
}

/**
 * A claim says where the session stands. `startFrom` is the state of a first turn, or of a session that another invocation
 * has changed; without it the invocation continues from where its own last turn ended.
 */
export function claimedAt(lineage: Lineage, claim: TurnBase, startFrom?: SessionState): Lineage {
  const { base, parent, listed } = claim;
  const claimed = { ...lineage, savedBase: base, nextParentId: parent?.snapshotId };
  if (startFrom === undefined) return claimed;
  return {
    ...claimed,
    policyBase: listed && listedState(listed),
    fallbackState: startFrom,
    fallbackSnapshotId: parent?.listed === false ? undefined : parent?.snapshotId,
  };
}

/** This process took over a run from where its last attempt stopped. `state` is its last checkpoint. */
export function resumedAt({ base, claim: { parent } }: TakenRun, state: SessionState): Lineage {
  const isListed =
    base !== undefined && (base.snapshotId !== parent?.snapshotId || parent.listed !== false);
  return {
    initBase: undefined,
    savedBase: base,
    nextParentId: base?.snapshotId ?? parent?.snapshotId,
    policyBase: isListed ? listedState(base) : undefined,
    fallbackState: state,
    fallbackSnapshotId: parent?.listed === false ? undefined : parent?.snapshotId,
  };
}

/** The session continues from this state, which no snapshot has yet: that of an input of a detached run, or one in the present schema. */
export function continuingFrom(lineage: Lineage, state: SessionState): Lineage {
  return { ...lineage, fallbackState: state };
}

/** A checkpoint was written: later writes are stored as changes of it, but it is no snapshot. */
export function checkpointedAs(lineage: Lineage, base: StateBase): Lineage {
  return { ...lineage, savedBase: base };
}

/** A state was committed, as a snapshot (`listed`) or only as the latest state. */
export function savedAs(lineage: Lineage, base: StateBase, listed?: ListedState): Lineage {
  return {
    ...lineage,
    savedBase: base,
    nextParentId: base.snapshotId,
    ...(listed && { policyBase: listed }),
  };
}

/** A turn ended well: from now on the session falls back to its state. */
export function endedWith(lineage: Lineage, state: SessionState): Lineage {
  const { policyBase } = lineage;
  const isListed = policyBase !== undefined && isSameState(policyBase.state, state);
  return {
    ...lineage,
    fallbackState: state,
    fallbackSnapshotId: isListed ? policyBase.id : undefined,
  };
}

/** The turn failed: its snapshot hangs where the turn started, not on a snapshot within the turn. */
export function failedFrom(lineage: Lineage, parentId: string | undefined): Lineage {
  return { ...lineage, nextParentId: parentId };
}

/** Another worker ended the turn: what was loaded here is out of date. */
export function endedElsewhere(lineage: Lineage): Lineage {
  return { ...lineage, initBase: undefined, savedBase: undefined };
}

function listedState({ snapshotId, state }: StateBase): ListedState {
  return { id: snapshotId, state };
}
