import { code } from '../../sql/values/codes.ts';
import { now } from '../dialect.ts';

/** What a claim gives, as JSON. Ids are hexadecimal. */
export interface ClaimAnswer {
  readonly fresh: boolean;
  readonly next_index: number;
  readonly head_row_id: number | null;
  readonly head_id: string | null;
  readonly head_idx: number | null;
  readonly start_row_id: number | null;
  readonly start_id: string | null;
  readonly start_turn: number | null;
  readonly start_finish: number | null;
  readonly start_idx: number | null;
  readonly start_parent: number | null;
  readonly start_totals: string | null;
  readonly start_answered: number;
}

const startColumns =
  's.row_id, s.id, s.idx, s.parent, s.turn, s.finish, s.totals, s.session, s.status, h.row_id AS head_row_id, h.id AS head_id, h.idx AS head_idx';

/**
 * Accepts a run of an idle session: creates the session if needed, and the run. It locks the session's
 * row before it reads on, so that it sees what a commit in the same moment leaves. Whatever is not usual gives NULL and
 * leaves no run; a transaction looks at it again and knows what to say.
 *
 * The claim of an attached caller waits for no disk: what is written under it does, and makes it last as well.
 */
export const claimTurn = `
CREATE FUNCTION @claim_run(
  _owner text, _agent text, _session text, _run bytea, _mode smallint, _worker text, _request text, _ttl bigint,
  _expects boolean, _head bytea, _byAgent text, _bySession text, _bySnapshot text, _from bytea)
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  known record;       -- the session
  start record;       -- what the run goes on from, and the session's head
  answered boolean := false;
  waits text;
BEGIN
  SELECT z.row_id, z.head, z.next_index, false AS fresh INTO known FROM @sessions z
  WHERE z.owner = _owner AND z.agent = _agent AND z.id = _session FOR UPDATE;
  IF NOT FOUND THEN
    IF _from IS NOT NULL OR (_expects AND _head IS NOT NULL)
      OR EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = _run)
      OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = _run) THEN RETURN NULL; END IF;
    INSERT INTO @sessions AS z(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    VALUES(_owner, _agent, _session, _byAgent, _bySession, _bySnapshot, ${now}, ${now})
    ON CONFLICT DO NOTHING RETURNING z.row_id, z.head, z.next_index, true AS fresh INTO known;
    IF NOT FOUND THEN RETURN NULL; END IF;
  END IF;
  IF _from IS NULL THEN
    SELECT ${startColumns.replaceAll('h.', 's.')} INTO start FROM @snapshots s WHERE s.row_id = known.head;
  ELSE
    SELECT ${startColumns} INTO start FROM @snapshots s LEFT JOIN @snapshots h ON h.row_id = known.head WHERE s.id = _from;
    IF NOT FOUND OR start.session <> known.row_id OR start.status <> ${code.succeeded} THEN RETURN NULL; END IF;
  END IF;
  IF start.head_row_id IS DISTINCT FROM known.head OR (_expects AND start.head_id IS DISTINCT FROM _head) THEN
    RETURN NULL;
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
  RETURN json_build_object('fresh', known.fresh, 'next_index', known.next_index,
    'head_row_id', start.head_row_id, 'head_id', encode(start.head_id, 'hex'), 'head_idx', start.head_idx,
    'start_row_id', start.row_id, 'start_id', encode(start.id, 'hex'), 'start_turn', start.turn, 'start_finish', start.finish,
    'start_idx', start.idx, 'start_parent', start.parent, 'start_totals', start.totals, 'start_answered', answered::integer);
END $$;
`;
