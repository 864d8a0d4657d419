import { isSnapshotId } from '../../../session/ids.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { RunSupport, StateBase, TakenRun } from '../../../session/store.ts';
import { all, one, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { findByNo, locationOfRow, stateOf } from '../snapshots/locate.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { startRow, toParent } from './claim.ts';
import { type RunRow, runsOf, toRecord } from './run-record.ts';

type Request = Parameters<RunSupport['takeOver']>[0];

const outlives = `r.mode <> ${code.attached}`;
const expired = (now: string): string => `${now} - r.heartbeat >= r.ttl`;

const selectExpired = statement<{ session: number }>(
  'take_over_find',
  (d) => `
    SELECT r.session FROM @runs r JOIN @sessions z ON z.no = r.session
    WHERE ${outlives} AND ${expired(d.now)} AND z.agent IN ${d.texts('$1')}
      AND ($3 = '' OR substr(r.worker, 1, length($3)) <> $3)
    ORDER BY r.created_at, r.id LIMIT $2 ${d.lockFree('r')}`,
);
const selectExpiredRun = statement<{ session: number }>(
  'take_over_find_one',
  (d) => `
    SELECT r.session FROM @runs r JOIN @sessions z ON z.no = r.session
    WHERE ${outlives} AND (${expired(d.now)} OR r.worker = $3)
      AND z.agent IN ${d.texts('$1')} AND r.id = $2 ${d.lock('r')}`,
);
const updateTaken = statement(
  'take_over',
  (d) => `
    UPDATE @runs SET attempt = attempt + 1, worker = $2, ttl = $3, heartbeat = ${d.now}
    WHERE session = $1`,
);
const selectSession = statement<{
  head: number | null;
  head_id: Uint8Array | null;
  head_idx: number | null;
  next_index: number;
}>(
  'take_over_session',
  `SELECT z.head, h.id AS head_id, h.idx AS head_idx, z.next_index
   FROM @sessions z LEFT JOIN @snapshots h ON h.no = z.head WHERE z.no = $1`,
);

/** Takes expired runs, oldest first; gives their sessions. Nothing of theirs is read yet. */
export function* takeRuns({
  agents,
  worker,
  ttl,
  limit,
  runId,
  exceptWorker = '',
  waitingAs = '',
}: Request): Plan<readonly number[]> {
  const names = JSON.stringify(agents);
  if (runId !== undefined && !isSnapshotId(runId)) return [];
  const rows =
    runId === undefined
      ? yield* all(selectExpired, names, limit, exceptWorker)
      : yield* all(selectExpiredRun, names, uuidBytes(runId), waitingAs);
  for (const { session } of rows) yield* run(updateTaken, session, worker, ttl);
  return rows.map(({ session }) => session);
}

/** What is needed to go on with runs that were taken over. */
export function* readTaken(
  sessions: readonly number[],
  context: StateContext,
): Plan<readonly (TakenRun & { readonly from?: StateBase })[]> {
  const taken: (TakenRun & { readonly from?: StateBase })[] = [];
  for (const row of yield* runsOf(sessions)) taken.push(yield* readRun(row, context));
  return taken;
}

function* readRun(
  row: RunRow,
  context: StateContext,
): Plan<TakenRun & { readonly from?: StateBase }> {
  const record = toRecord(row, context.vault);
  const start = row.start === null ? undefined : yield* startRow(row.start);
  // It was accepted while the interrupt was open; its own snapshots are no second answer.
  const parent = start && toParent({ ...start, start_answered: 0 });
  const session = yield* one(selectSession, row.session);
  const base = row.base === null ? undefined : yield* readBase(row.base, record.runId, context);
  const isCommitted = row.checkpoint === row.base;
  const reached =
    row.checkpoint === null || isCommitted
      ? undefined
      : yield* readBase(row.checkpoint, record.runId, context);
  const checkpoint =
    row.checkpoint === null ? undefined : isCommitted ? base?.state : onBase(base, reached?.state);
  const leaves = session.head !== null && session.head_idx === null && session.head !== row.base;
  return {
    run: record,
    claim: {
      runId: record.runId,
      attempt: record.attempt,
      sessionId: record.sessionId,
      fresh: false,
      ...(parent === undefined ? {} : { parent }),
      ...(session.head_id === null ? {} : { headId: uuidText(session.head_id) }),
      nextIndex: session.next_index + (leaves ? 1 : 0),
    },
    ...(base === undefined ? {} : { base }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(reached === undefined || checkpoint === undefined
      ? {}
      : { from: { ...reached, state: checkpoint } }),
  };
}

function* readBase(no: number, runId: string, context: StateContext): Plan<StateBase | undefined> {
  const row = yield* findByNo(no);
  if (row === undefined) return undefined;
  const read = yield* stateOf(row, context, { marked: false });
  const ref = locationOfRow(row, read, context.database);
  // A checkpoint has no id of its own.
  const snapshotId = row.id === null ? runId : uuidText(row.id);
  return { snapshotId, state: read.state, ref };
}

/** The checkpoint's state, sharing its history with the base's, so that what is new since costs what is new. */
function onBase(
  base: StateBase | undefined,
  state: SessionState | undefined,
): SessionState | undefined {
  if (base === undefined || state === undefined) return state;
  const { history } = base.state;
  if (!history.isPrefixOf(state.history)) return state;
  return { ...state, history: history.append(state.history.toArray(history.length)) };
}
