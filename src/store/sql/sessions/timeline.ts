import { isName, isSnapshotId } from '../../../protocol/ids.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import type { ExpectHead, ForkTarget, RunRef, Scope } from '../../contract/store.ts';
import {
  checkFork,
  decideLabel,
  decideRestore,
  type NamedFacts,
} from '../../rules/decide-timeline.ts';
import { notFound, stillRunning } from '../../rules/errors.ts';
import { sealed } from '../content/open-json.ts';
import { type HomeRow, homeIn, snapshotPlace } from '../content/places.ts';
import { first, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { copyEffects } from '../effects.ts';
import type { StateContext } from '../history/state-rows.ts';
import { forkMemory } from '../memory.ts';
import { createSession, isUsed } from '../runs/claim.ts';
import { endRun, expireRun } from '../runs/end-run.ts';
import { type HolderRow, holderColumns, holderFact, openRun } from '../runs/open-run.ts';
import { countIndex, listHead } from '../snapshots/active-path.ts';
import { findRow, metadataOf } from '../snapshots/locate.ts';
import { openHash } from '../snapshots/snapshot-row.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code, fromStatus } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { findSession } from './sessions.ts';

interface WrittenRow extends HolderRow, HomeRow {
  readonly row_id: number;
  readonly status: number;
  readonly idx: number | null;
  readonly session: number;
  readonly state_hash: Uint8Array;
  readonly head: number | null;
  readonly head_idx: number | null;
  readonly head_id: Uint8Array | null;
}

const selectWritten = readUnderLock<WrittenRow>(
  'timeline_snapshot',
  (d) => `
    SELECT ${d.now} AS now, s.row_id, s.status, s.idx, s.session, s.state_hash, z.owner,
      z.agent, z.id AS session_id, z.head,
      h.idx AS head_idx, h.id AS head_id, ${holderColumns}
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
    LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @runs r ON r.session = z.row_id
    WHERE s.id = $1 AND z.owner = $2 AND z.agent = $3 ${d.lock('z')}`,
);
const selectReserved = statement<{ found: number }>(
  'timeline_reserved',
  `SELECT 1 AS found FROM @runs r JOIN @sessions z ON z.row_id = r.session
   WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3`,
);
const moveHead = statement(
  'timeline_head',
  (d) => `UPDATE @sessions SET head = $2, updated_at = ${d.now} WHERE row_id = $1`,
);
export const updateLabel = statement(
  'timeline_label',
  'UPDATE @snapshots SET label = $2 WHERE row_id = $1',
);
const listSnapshot = statement(
  'timeline_list',
  `UPDATE @snapshots SET idx = (SELECT next_index FROM @sessions WHERE row_id = $2) WHERE row_id = $1`,
);
const insertBranch = statement<{ row_id: number }>(
  'timeline_fork_branch',
  `INSERT INTO @branches(session, parent, fork, fork_view)
   SELECT $1, branch, branch_length, view FROM @snapshots WHERE row_id = $2 RETURNING row_id`,
);
const insertFork = statement<{ row_id: number }>(
  'timeline_fork',
  (d) => `
    INSERT INTO @snapshots(id, session, idx, turn, event, status, finish, branch, branch_length, length, custom,
      artifacts, state_hash, totals, created_at, updated_at)
    SELECT $1, $2, 0, turn, CASE WHEN event = ${code.edit} THEN ${code.turnEnd} ELSE event END, status, finish, $4, 0, length, custom, artifacts, $5, totals,
      ${d.now}, ${d.now}
    FROM @snapshots WHERE row_id = $3 RETURNING row_id`,
);
const updateFork = statement(
  'timeline_fork_session',
  'UPDATE @sessions SET head = $2, branch_end = $2, next_index = 1, forked_from = $3 WHERE row_id = $1',
);

/** A snapshot that has been written; a turn that is being worked on cannot be restored or labelled yet. */
function* written(scope: Scope, snapshotId: string): Plan<WrittenRow> {
  if (!isSnapshotId(snapshotId)) throw notFound('snapshot', snapshotId);
  const values = [uuidBytes(snapshotId), ...scopeKey(scope)] as const;
  const row = yield* first(selectWritten, ...values);
  if (row !== undefined) return row;
  if ((yield* first(selectReserved, ...values)) === undefined) {
    throw notFound('snapshot', snapshotId);
  }
  throw stillRunning(snapshotId);
}

/** Facts about a snapshot that has been written, for the rules. */
function namedFacts(row: WrittenRow): NamedFacts<number> {
  return {
    snapshot: {
      key: row.row_id,
      isListed: row.idx !== null,
      parent: null,
      status: fromStatus(row.status),
    },
    isReserved: false,
    sessionId: row.session_id,
    head:
      row.head === null || row.head_id === null
        ? null
        : { key: row.head, isListed: row.head_idx !== null, id: uuidText(row.head_id) },
  };
}

function* reread(scope: Scope, snapshotId: string, context: StateContext): Plan<Snapshot> {
  const row = yield* findRow(scope, { snapshotId });
  if (row === undefined) throw notFound('snapshot', snapshotId);
  return metadataOf(row, context);
}

/** Moves the head. A head that was not listed is listed before it is left. */
export function* restore(
  scope: Scope,
  snapshotId: string,
  { expectHead, run: ref }: ExpectHead & { readonly run?: RunRef },
  context: StateContext,
): Plan<Snapshot> {
  const held = ref && (yield* openRun(ref));
  const row = yield* written(scope, snapshotId);
  const isHeld = held !== undefined && held.session === row.session;
  const facts = { ...namedFacts(row), run: isHeld ? null : holderFact(row), now: row.now };
  const decision = decideRestore(facts, { snapshotId, expectHead });
  if (decision.displaced !== null) yield* expireRun(decision.displaced, context);
  if (decision.listsHead) {
    yield* run(listHead, row.session);
    yield* run(countIndex, row.session);
  }
  yield* run(moveHead, row.session, row.row_id);
  if (isHeld) yield* endRun(held, context);
  return yield* reread(scope, snapshotId, context);
}

/** Labels a snapshot. A label is for something that stays, so an unlisted snapshot is listed. */
export function* label(
  scope: Scope,
  snapshotId: string,
  { text, expectHead }: { readonly text: string | null; readonly expectHead: string | undefined },
  context: StateContext,
): Plan<Snapshot> {
  const row = yield* written(scope, snapshotId);
  const change = { snapshotId, label: text, expectHead };
  const { lists } = decideLabel(namedFacts(row), change);
  const place = snapshotPlace('label', homeIn(scope, row.session_id), snapshotId);
  yield* run(updateLabel, row.row_id, sealed(text, place, context.cipher));
  if (lists) {
    yield* run(listSnapshot, row.row_id, row.session);
    yield* run(countIndex, row.session);
  }
  return yield* reread(scope, snapshotId, context);
}

/** Starts a session whose first snapshot lies on an empty branch of the original: nothing is copied. */
export function* fork(
  scope: Scope,
  snapshotId: string,
  target: ForkTarget,
  context: StateContext,
): Plan<Snapshot> {
  const source = yield* written(scope, snapshotId);
  const { sessionId } = target;
  const isTaken = isSnapshotId(target.snapshotId) && (yield* isUsed(uuidBytes(target.snapshotId)));
  const sessionExists = isName(sessionId) && (yield* findSession(scope, sessionId)) !== undefined;
  const facts = { ...namedFacts(source), isTaken, sessionExists };
  checkFork(facts, snapshotId, target);
  const session = yield* createSession(scope, target.sessionId);
  const id = uuidBytes(target.snapshotId);
  const branch = yield* one(insertBranch, session, source.row_id);
  const { cipher } = context;
  const place = snapshotPlace('state_hash', homeIn(scope, target.sessionId), id);
  const hash = cipher.sealHash(
    openHash(source, { ...source, id: uuidBytes(snapshotId) }, cipher),
    place,
  );
  const { row_id: rowId } = yield* one(insertFork, id, session, source.row_id, branch.row_id, hash);
  const origin = JSON.stringify({ sessionId: source.session_id, snapshotId });
  yield* run(updateFork, session, rowId, origin);
  if (target.memory !== undefined) {
    const made = { session, snapshotId: target.snapshotId, owner: source.owner };
    const from = { session: source.session, snapshotId };
    yield* forkMemory(from, made, target.memory, cipher);
  }
  yield* run(copyEffects, session, source.session);
  return yield* reread(scope, target.snapshotId, context);
}
