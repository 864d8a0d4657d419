import { isSameState, type SessionState } from '../../session/session-state.ts';
import type { LoadedState, StateBase, TakenRun } from '../../store/contract/store.ts';
import type { TurnBase } from '../spec/turn-store.ts';

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

/** The state was brought up to the agent's present schema. */
export function upgradedTo(lineage: Lineage, state: SessionState): Lineage {
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

/** One input of a detached run is done. The run becomes a snapshot only when it ends. */
export function inputDone(lineage: Lineage, state: SessionState): Lineage {
  return { ...lineage, fallbackState: state };
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
