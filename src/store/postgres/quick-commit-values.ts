import type { CommitWrite, RunEvent, RunRef } from '../contract/store.ts';
import type { CommitDecision } from '../rules/decide-commit.ts';
import { packEvents } from '../rules/event-body.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import type { DocumentWrite } from '../sql/content/document.ts';
import type { ManifestWrite } from '../sql/content/manifest.ts';
import { type Home, journalPlace } from '../sql/content/places.ts';
import type { SqlValue } from '../sql/database/query.ts';
import { commonOf } from '../sql/history/plan-state.ts';
import { otherBranches, toStored, viewOfRewrite } from '../sql/history/segments.ts';
import type { StateContext, StateRows } from '../sql/history/state-rows.ts';
import type { KnownRun } from '../sql/runs/held-runs.ts';
import { outcomeOf } from '../sql/snapshots/snapshot-row.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import { toStatus } from '../sql/values/codes.ts';
import type { moreParameters, stateParameters, turnParameters } from './functions/commit-turn.ts';
import type { PostgresValue } from './statements.ts';

type Values<Parameters> = Readonly<Record<keyof Parameters, PostgresValue>>;
type TurnValues = Values<typeof turnParameters>;
type StateValues = Values<typeof stateParameters>;
type MoreValues = Values<typeof moreParameters>;

/** What a commit goes by, and what was decided. */
export interface Decided extends KnownRun {
  readonly decision: CommitDecision<number>;
  /** Whether the messages continue on their branch. */
  readonly isInPlace: boolean;
}

/** What a commit says of its turn. */
export function turnValues(
  { runId, attempt }: RunRef,
  write: CommitWrite,
  decided: Decided,
  home: Home,
  context: StateContext,
): TurnValues {
  const run = uuidBytes(runId);
  return {
    run,
    attempt,
    ...factValues(decided),
    snapshot: write.snapshotId === runId ? run : uuidBytes(write.snapshotId),
    ...decisionValues(decided),
    ...outcomeOf(write, home, context),
  };
}

function factValues({
  facts: { own, inputsDone, head, nextIndex, parent },
  held: { session, base, checkpoint, branch_end },
}: KnownRun) {
  return {
    held: [own?.key, base, checkpoint, inputsDone, head?.key, branch_end, nextIndex].map(orNull),
    parent: parent && [
      parent.key,
      session,
      toStatus(parent.status),
      parent.isListed ? 1 : 0,
      parent.parent,
    ],
    isHeadListed: head === null || head.key === parent?.key ? null : String(head.isListed),
    ownParent: own?.parent ?? null,
  };
}

function decisionValues({ decision, isInPlace, held: { base, checkpoint } }: Decided) {
  const { row, parent, index, createdAt, replaces, movesHead, nextIndex, run } = decision;
  const after = typeof run === 'string' ? undefined : run;
  return {
    row,
    line: parent,
    idx: index,
    isFromClaim: String(createdAt === 'claim'),
    replaces,
    // A committed snapshot that served as the checkpoint stays.
    drops: decision.dropsCheckpoint && checkpoint !== base ? checkpoint : null,
    movesHead: String(movesHead),
    nextIndex,
    inputsDone: after?.inputsDone ?? null,
    midTurn: after?.midTurn === true ? 1 : 0,
    isInPlace: String(isInPlace),
  };
}

function orNull(value: number | null | undefined): number | null {
  return value ?? null;
}

/** What a commit says of its state. */
export function stateValues({ base, bodies, length, custom, artifacts }: StateRows): StateValues {
  return {
    from: base?.snapshot ?? null,
    branch: base?.view?.branch ?? null,
    branchLength: base?.view?.to ?? null,
    view: base?.viewRowId ?? null,
    bodies: bodies.map(String),
    length,
    custom: custom.kind === 'same' ? custom.ref.rowId : null,
    list: artifacts.kind === 'same' ? artifacts.ref.rowId : null,
  };
}

/** What a turn has besides messages; `undefined` when there is nothing. */
export function moreValues(
  rows: StateRows,
  events: EventValues,
  blobLock: string,
): MoreValues | undefined {
  const { rewrite, custom, artifacts } = rows;
  const isUsual =
    rewrite === undefined &&
    (custom.kind === 'same' || custom.kind === 'none') &&
    (artifacts.kind === 'same' || artifacts.kind === 'none') &&
    events.eventBody === null;
  if (isUsual) return undefined;
  return {
    ...viewValues(rows),
    ...customValues(custom),
    ...listValues(artifacts),
    ...events,
    blobLock,
  };
}

// A branch that does not exist yet is written as 0, which means a view's own branch.
function viewValues({ rewrite, base, bodies }: StateRows) {
  const here = rewrite && base?.view && viewOfRewrite(rewrite, base.view.branch, base.view.to, 0);
  const fresh = rewrite && viewOfRewrite(rewrite, 0, 0, bodies.length);
  return {
    ownFromHere: here?.from ?? null,
    ownFromNew: fresh?.from ?? null,
    viewHere: here === undefined ? null : toStored(here),
    viewNew: fresh === undefined ? null : toStored(fresh),
    common: rewrite === undefined ? null : commonOf(rewrite.common, base),
    viewRefs: fresh === undefined ? [] : otherBranches(fresh),
  };
}

function customValues(write: DocumentWrite) {
  const isWritten = write.kind === 'patch' || write.kind === 'whole';
  return {
    customBody: isWritten ? write.body : null,
    customHash: write.kind === 'whole' ? write.digest : null,
    customPrev: write.kind === 'patch' ? write.to.rowId : null,
  };
}

function listValues(write: ManifestWrite) {
  const whole = write.kind === 'whole' ? write : undefined;
  return {
    listBody: whole?.body ?? null,
    listHash: whole?.digest ?? null,
    partHashes: (whole?.fresh ?? []).map(({ digest }) => digest),
    partBodies: (whole?.fresh ?? []).map(({ body }) => String(body)),
    knownParts: [...(whole?.known.values() ?? [])],
  };
}

type EventValues = Readonly<
  Record<'eventAttempt' | 'eventSeq' | 'eventLast' | 'eventBody', SqlValue>
>;

/** Events as one row; `undefined` when they are of several attempts. */
export function eventValues(
  { runId }: RunRef,
  events: readonly RunEvent[],
  home: Home,
  cipher: Cipher,
): EventValues | undefined {
  const [begin] = events;
  const end = events.at(-1);
  if (begin === undefined || end === undefined) {
    return { eventAttempt: null, eventSeq: null, eventLast: null, eventBody: null };
  }
  if (begin.attempt !== end.attempt) return undefined;
  const row = { attempt: begin.attempt, seq: begin.seq, last: end.seq };
  const body = cipher.encrypt(packEvents(events), journalPlace(home, runId, row));
  return {
    eventAttempt: begin.attempt,
    eventSeq: begin.seq,
    eventLast: end.seq,
    eventBody: body,
  };
}
