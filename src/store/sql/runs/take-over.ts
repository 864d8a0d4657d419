import { defined } from '../../../core/json/json.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { RunSupport, RunUsage, StateBase, TakenRun } from '../../contract/store.ts';
import { toClaim } from '../../rules/decide-claim.ts';
import { anySuspects, pickRuns } from '../../rules/suspects.ts';
import { all, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { type ReadBase, readBase } from '../snapshots/locate.ts';
import { hexOf, uuidBytes, uuidText } from '../values/bytes.ts';
import { code, fromRunUsage, fromTotals } from '../values/codes.ts';
import { type RunRow, runColumns, runTables, toRecord } from './run-record.ts';
import { type StartRow, startColumns, toStartFact, totalsOfFailed } from './start-row.ts';

/** Which runs are taken over, by whom. */
export type TakeOver = Parameters<RunSupport['takeOver']>[0];

const outlives = `r.mode <> ${code.attached}`;
const expired = (now: string): string => `${now} - r.heartbeat >= r.ttl`;

/**
 * Whether taking a run over counts a crash of its worker: not when it was handed over, which leaves it no time to live, when it
 * waited for a worker, or when its own worker takes it again.
 */
const hasCrashed = (now: string, worker: string, waitingAs: string): string =>
  `CASE WHEN ${expired(now)} AND r.ttl > 0 AND r.worker <> ${worker} AND r.worker <> ${waitingAs} THEN 1 ELSE 0 END`;

interface FoundRow {
  readonly session: number;
  readonly has_crashed: number;
  /** The last one included. */
  readonly crashes: number;
}

const foundColumns = (now: string, worker: string, waitingAs: string): string => `
  r.session, ${hasCrashed(now, worker, waitingAs)} AS has_crashed,
  r.crashes + ${hasCrashed(now, worker, waitingAs)} AS crashes`;

// Runs that are no suspects come first, so that suspects that have to wait do not fill the limit.
const selectExpired = statement<FoundRow>(
  'take_over_find',
  (d) => `
    SELECT ${foundColumns(d.now, '$4', "''")}
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    WHERE ${outlives} AND ${expired(d.now)} AND z.agent ${d.texts('$1')}
      AND ($3 = '' OR substr(r.worker, 1, length($3)) <> $3)
    ORDER BY CASE WHEN r.crashes + ${hasCrashed(d.now, '$4', "''")} >= $5 THEN 0
      ELSE r.crashes + ${hasCrashed(d.now, '$4', "''")} END,
      r.created_at, r.id LIMIT $2 ${d.lockFree('r')}`,
);
// In one order everywhere, so that two workers that take the same runs do not wait for each other.
const selectNamed = statement<FoundRow>(
  'take_over_find_named',
  (d) => `
    SELECT ${foundColumns(d.now, '$4', '$3')} FROM @runs r JOIN @sessions z ON z.row_id = r.session
    WHERE ${outlives} AND (${expired(d.now)} OR r.worker = $3)
      AND z.agent ${d.texts('$1')} AND r.id ${d.bytes('$2')} ORDER BY r.id ${d.lock('r')}`,
);
const updateTaken = statement(
  'take_over',
  (d) => `
    UPDATE @runs SET attempt = attempt + 1, worker = $2, ttl = $3, heartbeat = ${d.now}
    WHERE session ${d.integers('$1')}`,
);
const updateCrashed = statement(
  'take_over_crashed',
  (d) => `
    UPDATE @runs SET crashes = crashes + 1,
      crashed = COALESCE(crashed || ',', '') || attempt || ':' || heartbeat
    WHERE session ${d.integers('$1')}`,
);
/** A run with where its session stands, and the snapshot that it starts from. */
interface TakenRow extends RunRow, StartRow {
  readonly head: number | null;
  readonly head_id: Uint8Array | null;
  readonly head_idx: number | null;
  readonly next_index: number;
}

const selectTaken = statement<TakenRow>(
  'take_over_read',
  (d) => `
    SELECT ${runColumns(d.now)}, z.head, h.id AS head_id, h.idx AS head_idx, z.next_index, ${startColumns(d)}
    FROM ${runTables} LEFT JOIN @snapshots h ON h.row_id = z.head LEFT JOIN @snapshots s ON s.row_id = r.start
    WHERE r.session ${d.integers('$1')} ORDER BY r.created_at, r.id`,
);

/** Takes expired runs, oldest first; gives their sessions. Nothing of theirs is read yet. */
export function* takeRuns({
  agents,
  worker,
  ttl,
  limit,
  runIds,
  exceptWorker = '',
  waitingAs = '',
  suspects = anySuspects,
}: TakeOver): Plan<readonly number[]> {
  const names = JSON.stringify(agents);
  const found =
    runIds === undefined
      ? yield* all(selectExpired, names, limit, exceptWorker, worker, suspects.attempts)
      : yield* all(selectNamed, names, hexList(runIds), waitingAs, worker);
  const rows = pickRuns(found, suspects);
  const crashed = rows.filter(({ has_crashed }) => has_crashed === 1);
  if (crashed.length > 0) yield* run(updateCrashed, sessionsOf(crashed));
  if (rows.length > 0) yield* run(updateTaken, sessionsOf(rows), worker, ttl);
  return rows.map(({ session }) => session);
}

const hexList = (runIds: readonly string[]): string =>
  JSON.stringify(runIds.filter(isSnapshotId).map((runId) => hexOf(uuidBytes(runId))));
const sessionsOf = (rows: readonly FoundRow[]): string =>
  JSON.stringify(rows.map(({ session }) => session));

/** A run that was taken over, and the checkpoint that it continues from. */
export type Taken = TakenRun & { readonly from?: StateBase };

/** The data needed to continue runs that were taken over. */
export function* readTaken(
  sessions: readonly number[],
  context: StateContext,
): Plan<readonly Taken[]> {
  // A run that has ended meanwhile is not found.
  const taken: Taken[] = [];
  for (const row of yield* all(selectTaken, JSON.stringify(sessions))) {
    taken.push(yield* readRun(row, context));
  }
  return taken;
}

// Reads the states that a run continues from.
function* readRun(row: TakenRow, context: StateContext): Plan<Taken> {
  const record = toRecord(row, context.cipher);
  const base = row.base === null ? undefined : yield* readBase(row.base, context);
  const isCommitted = row.checkpoint === row.base;
  const reached =
    row.checkpoint === null || isCommitted ? undefined : yield* readBase(row.checkpoint, context);
  const used =
    row.checkpoint === null ? undefined : usedAt(isCommitted ? base : reached, isCommitted);
  const { runId, scope, sessionId } = record;
  const where = { scope, sessionId, nextIndex: row.next_index };
  const from = toStartFact(row, false);
  const failedTotals = yield* totalsOfFailed(from, where);
  const checkpoint =
    row.checkpoint === null ? undefined : isCommitted ? base?.state : onBase(base, reached?.state);
  return defined({
    run: record,
    claim: toClaim(record, {
      start: from,
      base: row.base,
      head: headOf(row),
      isNewSession: false,
      nextIndex: row.next_index,
      failedTotals,
    }),
    base: base && toBase(base, runId),
    checkpoint,
    used,
    from: reached && checkpoint && { ...toBase(reached, runId), state: checkpoint },
  });
}

function headOf({ head, head_id, head_idx }: TakenRow) {
  if (head === null || head_id === null) return null;
  return { key: head, isListed: head_idx !== null, snapshotId: uuidText(head_id) };
}

function toBase({ snapshotId, state, ref }: ReadBase, runId: string): StateBase {
  return { snapshotId: snapshotId || runId, state, ref };
}

// The totals of a snapshot within the turn include the turn.
function usedAt(read: ReadBase | undefined, isCommitted: boolean): RunUsage | undefined {
  if (read === undefined || read.row.usage === null) return undefined;
  const totals = isCommitted ? undefined : fromTotals(read.row.totals);
  return defined({ ...fromRunUsage(read.row.usage), totals });
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
