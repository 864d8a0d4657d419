import { defined } from '../../../core/json/json.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunCrash, RunRecord, RunRequest, Scope } from '../../contract/store.ts';
import { isExpired } from '../../rules/holder.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson } from '../content/open-json.ts';
import { type HomeRow, homeOf, requestPlace } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import {
  all,
  first,
  type Plan,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import { iso, uuidBytes, uuidText } from '../values/bytes.ts';
import { fromMode } from '../values/codes.ts';
import { isSteered } from '../values/journal.ts';
import { inScope, scopeKey, scopeValues, toScope } from '../values/scope.ts';

/** An open run as it stands, with whose it is. */
export interface RunRow extends HomeRow {
  readonly now: number;
  readonly session: number;
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly mode: number;
  readonly worker: string;
  readonly request: SqlValue;
  readonly start: number | null;
  readonly base: number | null;
  readonly base_id: Uint8Array | null;
  readonly checkpoint: number | null;
  readonly inputs_done: number;
  readonly mid_turn: number;
  readonly stopping: number;
  readonly crashed: string | null;
  readonly is_steered: number;
  readonly ttl: number;
  readonly heartbeat: number;
  readonly created_at: number;
}

/** The columns of a {@link RunRow}, for the tables below. */
export const runColumns = (now: string): string => `
  ${now} AS now, r.session, r.id, z.owner, z.agent, z.id AS session_id, r.attempt, r.mode, r.worker,
  r.request, r.start, r.base, g.id AS base_id, r.checkpoint, r.inputs_done, r.mid_turn, r.stopping,
  r.crashed, ${isSteered('r')} AS is_steered, r.ttl, r.heartbeat, r.created_at`;
export const runTables =
  '@runs r JOIN @sessions z ON z.row_id = r.session LEFT JOIN @snapshots g ON g.row_id = r.base';
const selecting = (name: string, where: (d: Dialect) => string): Statement<RunRow> =>
  statement(
    name,
    (d) =>
      `SELECT ${runColumns(d.now)} FROM ${runTables} WHERE ${where(d)} ORDER BY r.created_at, r.id`,
  );
const selectRun = selecting('run_get', () => 'r.id = $1 AND z.owner = $2 AND z.agent = $3');
const selectRuns = selecting('run_list', () => inScope);
const selectBySessions = selecting('run_by_sessions', (d) => `r.session ${d.integers('$1')}`);

/** The open run under a reserved id. */
export function* getRun(scope: Scope, runId: string, cipher: Cipher): Plan<RunRecord | undefined> {
  if (!isSnapshotId(runId)) return undefined;
  const row = yield* first(selectRun, uuidBytes(runId), ...scopeKey(scope));
  return row && toRecord(row, cipher);
}

/** Open runs, oldest first. */
export function* listRuns(scope: Scope | undefined, cipher: Cipher): Plan<readonly RunRecord[]> {
  const rows = yield* all(selectRuns, ...scopeValues(scope));
  return rows.map((row) => toRecord(row, cipher));
}

/** The open runs of sessions, oldest first. */
export function* runsOf(sessions: readonly number[]): Plan<readonly RunRow[]> {
  return yield* all(selectBySessions, JSON.stringify(sessions));
}

export function toRecord(row: RunRow, cipher: Cipher): RunRecord {
  const request = openJson(row.request, requestPlace(homeOf(row), row.id), cipher);
  return defined({
    ...(request as Omit<RunRequest, 'mode'>),
    mode: fromMode(row.mode),
    runId: uuidText(row.id),
    attempt: row.attempt,
    scope: toScope(row.owner, row.agent),
    sessionId: row.session_id,
    worker: row.worker,
    parentId: row.base_id === null ? undefined : uuidText(row.base_id),
    createdAt: iso(row.created_at),
    heartbeatAt: iso(row.heartbeat),
    expired: isExpired({ heartbeatAt: row.heartbeat, ttl: row.ttl }, row.now),
    stopping: row.stopping === 1,
    inputsDone: row.inputs_done,
    midTurn: row.mid_turn === 1,
    steered: row.is_steered === 1 || undefined,
    crashes: row.crashed === null ? undefined : toCrashes(row.crashed),
  });
}

function toCrashes(text: string): readonly RunCrash[] {
  return text.split(',').map((each) => {
    const [attempt, heartbeat] = each.split(':').map(Number);
    return { attempt: attempt ?? 0, lastSeenAt: iso(heartbeat ?? 0) };
  });
}
