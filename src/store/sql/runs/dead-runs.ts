import type { ErrorBody } from '../../../core/error.ts';
import { defined } from '../../../core/json/json.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { DeadRunRecord, RunRequest, Scope } from '../../contract/store.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson } from '../content/open-json.ts';
import { type HomeRow, homeOf, requestPlace, snapshotPlace } from '../content/places.ts';
import { all, first, type Plan, type SqlValue, statement } from '../database/query.ts';
import { iso, uuidBytes, uuidText } from '../values/bytes.ts';
import { fromMode } from '../values/codes.ts';
import { inScope, scopeKey, scopeValues, toScope } from '../values/scope.ts';

/** Keeps what is needed to start the run of a session again, which is given up. */
export const bury = statement(
  'dead_add',
  (d) => `
    INSERT INTO @dead_runs(run, session, since, inputs_done, mode, request)
    SELECT r.id, r.session, ${d.now}, r.inputs_done, r.mode, r.request FROM @runs r WHERE r.session = $1`,
);

interface DeadRow extends HomeRow {
  readonly run: Uint8Array;
  readonly since: number;
  readonly inputs_done: number;
  readonly mode: number;
  readonly request: SqlValue;
  readonly error: SqlValue;
}

// A letter whose snapshot was pruned is not shown; it is deleted with its session.
const selectDead = statement<DeadRow>(
  'dead_list',
  `SELECT l.run, z.owner, z.agent, z.id AS session_id, l.since, l.inputs_done, l.mode, l.request, s.error
   FROM @dead_runs l JOIN @sessions z ON z.row_id = l.session JOIN @snapshots s ON s.id = l.run
   WHERE ${inScope} ORDER BY l.since, l.run`,
);
const deleteDead = statement<{ run: Uint8Array }>(
  'dead_drop',
  `DELETE FROM @dead_runs WHERE run = $1 AND session IN
     (SELECT z.row_id FROM @sessions z WHERE z.owner = $2 AND z.agent = $3)
   RETURNING run`,
);

/** The dead-letter queue. */
export function* listDead(
  scope: Scope | undefined,
  cipher: Cipher,
): Plan<readonly DeadRunRecord[]> {
  const rows = yield* all(selectDead, ...scopeValues(scope));
  return rows.map((row) => toRecord(row, cipher));
}

/** Removes a run from the dead-letter queue; `false` when it was not there. */
export function* dropDead(scope: Scope, runId: string): Plan<boolean> {
  if (!isSnapshotId(runId)) return false;
  return (yield* first(deleteDead, uuidBytes(runId), ...scopeKey(scope))) !== undefined;
}

function toRecord(row: DeadRow, cipher: Cipher): DeadRunRecord {
  const home = homeOf(row);
  const request = openJson(row.request, requestPlace(home, row.run), cipher);
  const place = snapshotPlace('error', home, row.run);
  const error = row.error === null ? undefined : openJson(row.error, place, cipher);
  return defined({
    ...(request as Omit<RunRequest, 'mode'>),
    mode: fromMode(row.mode),
    runId: uuidText(row.run),
    scope: toScope(row.owner, row.agent),
    sessionId: row.session_id,
    inputsDone: row.inputs_done,
    since: iso(row.since),
    error: error as ErrorBody | undefined,
  });
}
