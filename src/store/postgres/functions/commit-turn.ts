import { rowsPerBranch } from '../../sql/history/segments.ts';
import { trashKind } from '../../sql/retention/gc-queue.ts';
import { hasEvent, isEvent, isOfOpenRun, journal } from '../../sql/runs/journal.ts';
import { code } from '../../sql/values/codes.ts';
import { now } from '../dialect.ts';

/** What every commit says of its turn, and the types of it. */
export const turnParameters = {
  run: 'bytea',
  attempt: 'integer',
  snapshot: 'bytea',
  parent: 'bytea',
  isListed: 'boolean',
  isEnd: 'boolean',
  isMidTurn: 'boolean',
  // It ends a detached run, whose pending snapshot is listed already.
  isOwn: 'boolean',
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
  // Where the state lies that the new one grew from.
  from: 'bigint',
  fromLineage: 'bigint',
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
  readonly session_id: string;
  readonly created_at: number;
  readonly line: number | null;
  readonly line_id: string | null;
  readonly idx: number | null;
  readonly branch: number;
  readonly view: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly new_parts: readonly (readonly [hash: string, rowId: number])[] | null;
  /** How much may have become unreachable. */
  readonly discarded: number | null;
}

/** The parameters of a function that commits. */
export const declared: string = [
  ...Object.entries({ ...turnParameters, ...stateParameters }).map(
    ([name, type]) => `_${name} ${type}`,
  ),
  ...Object.entries(moreParameters).map(([name, type]) => `_${name} ${type} DEFAULT NULL`),
].join(', ');

const findOrAdd =
  'ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING b.row_id';

// The run under its attempt, held together with its session, and the snapshot that the commit says it continues from.
const read = `
  SELECT r.session, r.own_snapshot, r.base, r.checkpoint, r.created_at, z.id, z.head, z.branch_end, z.next_index INTO held
  FROM @runs r JOIN @sessions z ON z.row_id = r.session
  WHERE r.id = _run AND r.attempt = _attempt FOR UPDATE OF z, r;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT s.row_id, s.idx, s.parent, s.branch, s.branch_length, s.session, s.status INTO before FROM @snapshots s WHERE s.id = _parent;
  line := before.row_id;
  line_id := _parent;
  has_journal := EXISTS (SELECT 1 FROM @journal e WHERE e.run = _run);
  -- A turn with an inbox ends only if it has taken all of it.
  IF _isEnd AND has_journal AND EXISTS (SELECT 1 FROM @journal e WHERE e.run = _run AND e.attempt = ${journal.inbox})
    THEN RETURN NULL; END IF;`;

// An attached turn that grew from the session's head, which is listed: there is nothing to look at.
const isPlain = `held.own_snapshot IS NULL AND NOT _isOwn AND _snapshot = _run AND held.checkpoint IS NULL
    AND before.session = held.session AND before.status = ${code.succeeded} AND before.idx IS NOT NULL
    AND before.row_id = held.head AND before.row_id = _from AND before.branch = _branch AND before.branch_length = _branchLength
    AND _eventBody IS NULL`;

/*
 * Not usual are: a run that is detached while this is not its end, an unlisted head that would be left, a checkpoint that
 * would be abandoned, a base that has gone, an id that another run has, events that are there already.
 */
const checks = `
    IF (held.own_snapshot IS NOT NULL) <> _isOwn THEN RETURN NULL; END IF;
    IF _parent IS NOT NULL THEN
      IF (before.session = held.session AND before.status = ${code.succeeded}) IS NOT TRUE THEN RETURN NULL; END IF;
      IF before.idx IS NULL THEN
        line := before.parent;
        line_id := NULL;
        SELECT s.id INTO line_id FROM @snapshots s WHERE s.row_id = line;
      END IF;
    END IF;
    IF held.head = before.row_id THEN
      IF before.idx IS NULL THEN replaced := held.head; END IF;
    ELSIF held.head IS NOT NULL THEN
      IF NOT EXISTS (SELECT 1 FROM @snapshots h WHERE h.row_id = held.head AND h.idx IS NOT NULL) THEN RETURN NULL; END IF;
    END IF;
    IF _from IS NOT NULL THEN
      IF _from IS DISTINCT FROM before.row_id THEN
        SELECT s.branch, s.branch_length INTO before.branch, before.branch_length FROM @snapshots s WHERE s.row_id = _from;
      END IF;
      IF (before.branch = _branch AND before.branch_length = _branchLength) IS NOT TRUE THEN RETURN NULL; END IF;
    END IF;
    IF held.checkpoint IS NOT NULL AND held.checkpoint IS DISTINCT FROM held.base THEN
      bare := held.checkpoint;
      IF bare IS DISTINCT FROM _from THEN RETURN NULL; END IF;
    END IF;
    IF _snapshot <> _run AND EXISTS (SELECT 1 FROM @runs t WHERE t.id = _snapshot) THEN RETURN NULL; END IF;
    IF _eventBody IS NOT NULL AND ${hasEvent('_run', '_eventAttempt', '_eventSeq')} THEN RETURN NULL; END IF;
    -- A detached run was listed where the state that it continues from would put it now.
    IF _isOwn AND NOT (_isListed AND EXISTS (SELECT 1 FROM @snapshots o
      WHERE o.row_id = held.own_snapshot AND o.id = _snapshot AND o.parent IS NOT DISTINCT FROM line)) THEN RETURN NULL; END IF;`;

// Messages continue in place, or begin a branch.
const messages = `
  IF (held.branch_end = _from AND (line = _from
    OR (_from IN (replaced, bare) AND line IS NOT DISTINCT FROM _fromLineage))) IS NOT TRUE THEN
    INSERT INTO @branches AS b(session, parent, fork, fork_view, fork_snapshot)
    VALUES(held.session, _branch, CASE WHEN _common IS NULL THEN _branchLength END, CASE WHEN _common IS NULL THEN _view END, line)
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
  IF _isOwn THEN
    UPDATE @snapshots s SET updated_at = moment, turn = _turn, event = _event, status = _status, finish = _finish,
      state_hash = _hash, usage = _usage, totals = _totals, error = _error, branch = _branch,
      branch_length = _branchLength + cardinality(_bodies), view = _view, length = _length, custom = _custom, artifacts = _list
    WHERE s.row_id = held.own_snapshot RETURNING s.row_id, s.idx, s.created_at INTO made;
  ELSE
    INSERT INTO @snapshots AS s(id, session, parent, idx, turn, event, status, finish, state_hash, usage, totals,
      error, branch, branch_length, view, length, custom, artifacts, created_at, updated_at)
    VALUES(_snapshot, held.session, line, CASE WHEN _isListed THEN held.next_index END, _turn, _event, _status, _finish,
      _hash, _usage, _totals, _error, _branch, _branchLength + cardinality(_bodies), _view, _length, _custom, _list,
      CASE WHEN _snapshot = _run THEN held.created_at ELSE moment END, moment)
    RETURNING s.row_id, s.idx, s.created_at INTO made;
  END IF;
  IF replaced IS NOT NULL OR bare IS NOT NULL THEN
    WITH gone AS (
      DELETE FROM @snapshots s WHERE s.row_id IN (replaced, bare) AND s.idx IS NULL
      RETURNING s.branch, s.custom, s.artifacts)
    INSERT INTO @trash(kind, row_id)
    SELECT DISTINCT t.kind, t.row_id FROM gone g CROSS JOIN LATERAL (VALUES
      (${trashKind.branch}, CASE WHEN _common IS NOT NULL OR g.branch <> _branch THEN g.branch END),
      (${trashKind.blob}, CASE WHEN g.custom IS DISTINCT FROM _custom THEN g.custom END),
      (${trashKind.blob}, CASE WHEN g.artifacts IS DISTINCT FROM _list THEN g.artifacts END)) t(kind, row_id)
    WHERE t.row_id IS NOT NULL ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS discarded = ROW_COUNT;
  END IF;
  UPDATE @sessions z SET head = made.row_id, branch_end = made.row_id, updated_at = moment, title = coalesce(z.title, _title),
    next_index = CASE WHEN _isListed AND NOT _isOwn THEN z.next_index + 1 ELSE z.next_index END
  WHERE z.row_id = held.session;`;

const run = `
  IF NOT _isEnd THEN
    UPDATE @runs r SET base = made.row_id, checkpoint = made.row_id,
      inputs_done = r.inputs_done + CASE WHEN _isMidTurn THEN 0 ELSE 1 END,
      mid_turn = CASE WHEN _isMidTurn THEN 1 ELSE 0 END
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

/** Writes all of a turn's end. It gives NULL, and has written nothing, when that is not a usual one. */
export const commitTurn = `
CREATE FUNCTION @commit_run(${declared}, _title text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  held record;        -- the run and its session
  before record;      -- the snapshot that it says it continues from
  line bigint;        -- the listed one that it hangs on
  line_id bytea;
  replaced bigint;    -- the head, when it was not listed
  bare bigint;        -- the checkpoint of the run
  has_journal boolean;
  moment bigint;
  made record;
  new_parts json;
  parts bigint[];
  discarded integer;
BEGIN
${read}
  IF (${isPlain}) IS NOT TRUE THEN
${checks}
  END IF;
  moment := ${now};
${messages}
  IF _blobLock IS NOT NULL THEN
${more}
  END IF;
${snapshot}
${run}
  RETURN json_build_object('now', moment, 'row_id', made.row_id, 'session_id', held.id, 'created_at', made.created_at,
    'line', line, 'line_id', encode(line_id, 'hex'), 'idx', made.idx, 'branch', _branch, 'view', _view,
    'custom', _custom, 'artifacts', _list, 'new_parts', new_parts, 'discarded', discarded);
END $$;
`;
