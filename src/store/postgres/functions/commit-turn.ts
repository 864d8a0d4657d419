import { rowsPerBranch } from '../../sql/history/segments.ts';
import { trashKind } from '../../sql/retention/gc-queue.ts';
import { hasEvent, isEvent, isOfOpenRun, journal } from '../../sql/runs/journal.ts';
import { noCrashes } from '../../sql/runs/open-run.ts';
import { now } from '../dialect.ts';

/** What every commit says of its turn, and the types of it. */
export const turnParameters = {
  run: 'bytea',
  attempt: 'integer',
  // What the decision goes by. Unless the database still says the same, nothing is written.
  held: 'bigint[]', // own_snapshot, base, checkpoint and inputs_done of the run; head, branch_end and next_index of its session
  parent: 'bigint[]', // row_id, session, status, whether it is listed, and parent of what the snapshot continues from
  isHeadListed: 'boolean', // of a head that is not that snapshot
  ownParent: 'bigint', // of a detached run's own snapshot
  // What was decided.
  snapshot: 'bytea',
  row: 'bigint', // to be filled in; NULL: a new one
  line: 'bigint', // its parent
  idx: 'integer',
  isFromClaim: 'boolean', // when it was created: with the claim, or now
  replaces: 'bigint',
  drops: 'bigint', // the checkpoint that is obsolete
  movesHead: 'boolean',
  nextIndex: 'integer',
  inputsDone: 'integer', // of the run that continues; NULL: it ends
  midTurn: 'integer',
  isInPlace: 'boolean', // the messages continue on their branch, and do not begin another one
  // What happened.
  turn: 'integer',
  event: 'smallint',
  status: 'smallint',
  finish: 'smallint',
  hash: 'bytea',
  usage: 'text',
  totals: 'text',
  error: 'text',
} as const;

/** What every commit says of its state. */
export const stateParameters = {
  // Where the state lies that the new one grew from, which must still be there.
  from: 'bigint',
  branch: 'bigint',
  branchLength: 'integer',
  view: 'bigint',
  bodies: 'text[]',
  length: 'integer',
  // The rows of documents that stay as they were.
  custom: 'bigint',
  list: 'bigint',
} as const;

/** What a commit is given besides: all of it, with the key of the lock of documents, or nothing. */
export const moreParameters = {
  // A rewritten history, as it is when it continues in place and when it begins a branch; none when `common` is NULL.
  common: 'integer',
  ownFromHere: 'integer',
  ownFromNew: 'integer',
  viewHere: 'text',
  viewNew: 'text',
  viewRefs: 'bigint[]',
  // Documents to be written.
  customBody: 'text',
  customHash: 'bytea',
  customPrev: 'bigint',
  listBody: 'text',
  listHash: 'bytea',
  partHashes: 'bytea[]',
  partBodies: 'text[]',
  knownParts: 'bigint[]',
  blobLock: 'bigint',
  // Events that come with it.
  eventAttempt: 'integer',
  eventSeq: 'integer',
  eventLast: 'integer',
  eventBody: 'text',
} as const;

/** What a commit gives, as JSON. Ids and hashes are hexadecimal. */
export interface CommitAnswer {
  readonly now: number;
  readonly row_id: number;
  readonly created_at: number;
  /** The id of the parent, when that is not what the snapshot continues from. */
  readonly line_id: string | null;
  readonly branch: number;
  readonly view: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly new_parts: readonly (readonly [hash: string, rowId: number])[] | null;
  /** How much may have become unreachable. */
  readonly discarded: number | null;
}

const declared: string = [
  ...Object.entries({ ...turnParameters, ...stateParameters }).map(
    ([name, type]) => `_${name} ${type}`,
  ),
  ...Object.entries(moreParameters).map(([name, type]) => `_${name} ${type} DEFAULT NULL`),
].join(', ');

const findOrAdd =
  'ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING b.row_id';

// Holds the run under its attempt, together with its session, and compares what the decision goes by.
const compare = `
  SELECT r.session, r.created_at,
    ARRAY[r.own_snapshot, r.base, r.checkpoint, r.inputs_done, z.head, z.branch_end, z.next_index] AS facts INTO held
  FROM @runs r JOIN @sessions z ON z.row_id = r.session
  WHERE r.id = _run AND r.attempt = _attempt FOR UPDATE OF z, r;
  IF NOT FOUND OR held.facts IS DISTINCT FROM _held THEN RETURN NULL; END IF;
  SELECT s.row_id, s.branch, s.branch_length,
    ARRAY[s.row_id, s.session, s.status, (s.idx IS NOT NULL)::integer, s.parent] AS facts INTO before
  FROM @snapshots s WHERE s.row_id = _parent[1];
  IF before.facts IS DISTINCT FROM _parent THEN RETURN NULL; END IF;
  IF _from IS NOT NULL THEN
    IF _from IS DISTINCT FROM before.row_id THEN
      SELECT s.branch, s.branch_length INTO before.branch, before.branch_length FROM @snapshots s WHERE s.row_id = _from;
    END IF;
    IF (before.branch = _branch AND before.branch_length = _branchLength) IS NOT TRUE THEN RETURN NULL; END IF;
  END IF;
  IF _isHeadListed IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @snapshots h
    WHERE h.row_id = _held[5] AND (h.idx IS NOT NULL) = _isHeadListed) THEN RETURN NULL; END IF;
  IF _held[1] IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @snapshots o
    WHERE o.row_id = _held[1] AND o.parent IS NOT DISTINCT FROM _ownParent) THEN RETURN NULL; END IF;
  IF _snapshot <> _run AND EXISTS (SELECT 1 FROM @runs t WHERE t.id = _snapshot) THEN RETURN NULL; END IF;
  IF _eventBody IS NOT NULL AND ${hasEvent('_run', '_eventAttempt', '_eventSeq')} THEN RETURN NULL; END IF;
  has_journal := EXISTS (SELECT 1 FROM @journal e WHERE e.run = _run);
  IF _inputsDone IS NULL AND has_journal AND EXISTS (SELECT 1 FROM @journal e WHERE e.run = _run AND e.attempt = ${journal.inbox})
    THEN RETURN NULL; END IF;`;

// Messages continue in place, or begin a branch.
const messages = `
  IF NOT _isInPlace THEN
    INSERT INTO @branches AS b(session, parent, fork, fork_view, fork_snapshot)
    VALUES(held.session, _branch, CASE WHEN _common IS NULL THEN _branchLength END, CASE WHEN _common IS NULL THEN _view END, _line)
    RETURNING b.row_id INTO _branch;
    _branchLength := 0;
    _view := NULL;
    _ownFromHere := _ownFromNew;
    _viewHere := _viewNew;
  END IF;
  INSERT INTO @messages(id, body) SELECT _branch * ${rowsPerBranch} + _branchLength + t.n - 1, t.body
  FROM unnest(_bodies) WITH ORDINALITY t(body, n);`;

// Documents are found by their hash, so none may be removed meanwhile. A patch has none.
const more = `
    IF _common IS NOT NULL THEN
      INSERT INTO @views AS v(branch, own_from, base, common) VALUES(_branch, _ownFromHere, _viewHere, _common)
      RETURNING v.row_id INTO _view;
      INSERT INTO @view_refs(branch, view, view_branch)
      SELECT t.row_id, _view, _branch FROM unnest(_viewRefs) t(row_id) WHERE t.row_id <> _branch;
    END IF;
    IF _customHash IS NOT NULL OR _listHash IS NOT NULL THEN PERFORM pg_advisory_xact_lock_shared(_blobLock); END IF;
    IF _customBody IS NOT NULL THEN
      INSERT INTO @blobs AS b(hash, prev, body) VALUES(_customHash, _customPrev, _customBody) ${findOrAdd} INTO _custom;
    END IF;
    IF _listBody IS NOT NULL THEN
      WITH added AS (
        INSERT INTO @blobs AS b(hash, body) SELECT t.hash, t.body FROM unnest(_partHashes, _partBodies) t(hash, body)
        ${findOrAdd}, b.hash)
      SELECT json_agg(json_build_array(encode(a.hash, 'hex'), a.row_id)), array_agg(a.row_id) INTO new_parts, parts FROM added a;
      INSERT INTO @blobs AS b(hash, body) VALUES(_listHash, _listBody) ${findOrAdd} INTO _list;
      INSERT INTO @blob_parts(part, list) SELECT t.row_id, _list FROM unnest(parts || _knownParts) t(row_id) ON CONFLICT DO NOTHING;
    END IF;
    IF _eventBody IS NOT NULL THEN
      INSERT INTO @journal(run, session, attempt, seq, last, body)
      VALUES(_run, held.session, _eventAttempt, _eventSeq, _eventLast, _eventBody);
      has_journal := true;
    END IF;`;

const snapshot = `
  IF _row IS NOT NULL THEN
    UPDATE @snapshots s SET updated_at = moment, turn = _turn, event = _event, status = _status, finish = _finish,
      state_hash = _hash, usage = _usage, totals = _totals, error = _error, branch = _branch, parent = _line,
      branch_length = _branchLength + cardinality(_bodies), view = _view, length = _length, custom = _custom, artifacts = _list
    WHERE s.row_id = _row RETURNING s.row_id, s.created_at INTO made;
  ELSE
    INSERT INTO @snapshots AS s(id, session, parent, idx, turn, event, status, finish, state_hash, usage, totals,
      error, branch, branch_length, view, length, custom, artifacts, created_at, updated_at)
    VALUES(_snapshot, held.session, _line, _idx, _turn, _event, _status, _finish, _hash, _usage, _totals, _error,
      _branch, _branchLength + cardinality(_bodies), _view, _length, _custom, _list,
      CASE WHEN _isFromClaim THEN held.created_at ELSE moment END, moment)
    RETURNING s.row_id, s.created_at INTO made;
  END IF;
  IF _replaces IS NOT NULL OR _drops IS NOT NULL THEN
    WITH gone AS (
      DELETE FROM @snapshots s WHERE s.row_id IN (_replaces, _drops) AND (s.row_id = _replaces OR s.id IS NULL)
      RETURNING s.branch, s.custom, s.artifacts)
    INSERT INTO @trash(kind, row_id)
    SELECT DISTINCT t.kind, t.row_id FROM gone g CROSS JOIN LATERAL (VALUES
      (${trashKind.branch}, CASE WHEN _common IS NOT NULL OR g.branch <> _branch THEN g.branch END),
      (${trashKind.blob}, CASE WHEN g.custom IS DISTINCT FROM _custom THEN g.custom END),
      (${trashKind.blob}, CASE WHEN g.artifacts IS DISTINCT FROM _list THEN g.artifacts END)) t(kind, row_id)
    WHERE t.row_id IS NOT NULL ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS discarded = ROW_COUNT;
  END IF;
  UPDATE @sessions z SET head = CASE WHEN _movesHead THEN made.row_id ELSE z.head END, branch_end = made.row_id,
    next_index = _nextIndex, updated_at = moment, title = coalesce(z.title, _title)
  WHERE z.row_id = held.session;`;

const run = `
  IF _inputsDone IS NOT NULL THEN
    UPDATE @runs r SET base = made.row_id, checkpoint = made.row_id, inputs_done = _inputsDone, mid_turn = _midTurn, ${noCrashes}
    WHERE r.session = held.session;
  ELSE
    IF has_journal THEN
      DELETE FROM @journal j WHERE j.run = _run AND j.${isOfOpenRun};
      INSERT INTO @journal(run, session, attempt, seq, last, body, ended_at)
      SELECT _run, held.session, ${journal.end}, 0, 0, '[]', moment
      WHERE EXISTS (SELECT 1 FROM @journal e WHERE e.run = _run AND ${isEvent});
    END IF;
    DELETE FROM @runs r WHERE r.session = held.session;
  END IF;`;

/**
 * Writes what was decided on a commit that succeeded. It knows no rules: it compares the facts that the decision goes by, and gives NULL, with
 * nothing written, when they have changed.
 */
export const commitTurn = `
CREATE FUNCTION @write_commit(${declared}, _title text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  held record;        -- the run and its session
  before record;      -- the snapshot that it continues from
  line_id bytea;
  has_journal boolean;
  moment bigint;
  made record;
  new_parts json;
  parts bigint[];
  discarded integer;
BEGIN
${compare}
  moment := ${now};
${messages}
  IF _blobLock IS NOT NULL THEN
${more}
  END IF;
${snapshot}
${run}
  IF _line IS DISTINCT FROM before.row_id THEN SELECT s.id INTO line_id FROM @snapshots s WHERE s.row_id = _line; END IF;
  RETURN json_build_object('now', moment, 'row_id', made.row_id, 'created_at', made.created_at,
    'line_id', encode(line_id, 'hex'), 'branch', _branch, 'view', _view,
    'custom', _custom, 'artifacts', _list, 'new_parts', new_parts, 'discarded', discarded);
END $$;
`;
