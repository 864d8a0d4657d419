import { code } from '../../sql/values/codes.ts';
import { now } from '../dialect.ts';

/** A snapshot that a claim starts from, or the head, as JSON. Its id is hexadecimal. */
export interface ClaimedRow {
  readonly row_id: number;
  readonly id: string;
  readonly turn: number;
  readonly finish: number | null;
  readonly idx: number | null;
  readonly parent: number | null;
  readonly totals: string | null;
}

/** What a claim gives, as JSON. */
export interface ClaimAnswer {
  /** The session. */
  readonly row_id: number;
  readonly fresh: boolean;
  readonly next_index: number;
  readonly branch_end: number | null;
  readonly start: ClaimedRow | null;
  /** Absent when the run starts from it. */
  readonly head: ClaimedRow | null;
  /** Whether an interrupted start may be answered. */
  readonly answered: number;
}

const columns = 's.row_id, s.id, s.turn, s.finish, s.idx, s.parent, s.totals';

const asJson = (row: string): string =>
  `CASE WHEN ${row}.row_id IS NOT NULL THEN json_build_object('row_id', ${row}.row_id, 'id', encode(${row}.id, 'hex'),
      'turn', ${row}.turn, 'finish', ${row}.finish, 'idx', ${row}.idx, 'parent', ${row}.parent, 'totals', ${row}.totals) END`;

/**
 * Accepts a run of an idle session: creates the session if needed, and the run. It locks the session's
 * row before it reads on, so that it sees what a commit in the same moment leaves. It gives the facts, by which the process decides as for
 * any claim. Whatever the request does not expect (another head, a start that is not there, a run, a taken id) gives NULL and
 * leaves no run; a transaction looks at it again and knows what to say.
 *
 * The claim of an attached caller waits for no disk: what is written under it does, and makes it last as well.
 */
export const claimTurn = `
CREATE FUNCTION @open_run(
  _owner text, _agent text, _session text, _run bytea, _mode smallint, _worker text, _request text, _ttl bigint,
  _expects boolean, _head bytea, _byAgent text, _bySession text, _bySnapshot text, _from bytea)
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  known record;       -- the session
  head record;        -- its head
  start record;       -- what the run continues from
  answered boolean := false;
  waits text;
BEGIN
  SELECT z.row_id, z.head, z.next_index, z.branch_end, false AS fresh INTO known FROM @sessions z
  WHERE z.owner = _owner AND z.agent = _agent AND z.id = _session FOR UPDATE;
  IF NOT FOUND THEN
    IF _from IS NOT NULL OR (_expects AND _head IS NOT NULL)
      OR EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = _run)
      OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = _run) THEN RETURN NULL; END IF;
    INSERT INTO @sessions AS z(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    VALUES(_owner, _agent, _session, _byAgent, _bySession, _bySnapshot, ${now}, ${now})
    ON CONFLICT DO NOTHING RETURNING z.row_id, z.head, z.next_index, z.branch_end, true AS fresh INTO known;
    IF NOT FOUND THEN RETURN NULL; END IF;
  END IF;
  SELECT ${columns} INTO head FROM @snapshots s WHERE s.row_id = known.head;
  IF head.row_id IS DISTINCT FROM known.head OR (_expects AND head.id IS DISTINCT FROM _head) THEN RETURN NULL; END IF;
  IF _from IS NULL THEN
    start := head;
  ELSE
    SELECT ${columns} INTO start FROM @snapshots s
    WHERE s.id = _from AND s.session = known.row_id AND s.status = ${code.succeeded};
    IF NOT FOUND THEN RETURN NULL; END IF;
  END IF;
  IF start.finish = ${code.interrupted} THEN
    answered := EXISTS (SELECT 1 FROM @snapshots a
      WHERE a.session = known.row_id AND a.parent = start.row_id AND a.status = ${code.succeeded});
  END IF;
  IF _mode = ${code.attached} THEN waits := set_config('synchronous_commit', 'off', true); END IF;
  INSERT INTO @runs(session, id, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
  SELECT known.row_id, _run, 1, _mode, _worker, _request, COALESCE(start.turn, -1) + 1, start.row_id, start.row_id, _ttl,
    ${now}, ${now}
  WHERE NOT EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = _run)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN json_build_object('row_id', known.row_id, 'fresh', known.fresh, 'next_index', known.next_index,
    'branch_end', known.branch_end, 'start', ${asJson('start')},
    'head', CASE WHEN _from IS NOT NULL THEN ${asJson('head')} END, 'answered', answered::integer);
END $$;
`;
