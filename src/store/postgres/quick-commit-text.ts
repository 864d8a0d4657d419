import type { Dialect } from '../sql/database/dialect.ts';
import { rowsPerBranch } from '../sql/history/segments.ts';
import { trashKind } from '../sql/retention/trash.ts';
import { isEvent, journal } from '../sql/runs/journal.ts';
import { code } from '../sql/values/codes.ts';
import { type Parameters, parameters } from './parameters.ts';

/** What a commit has to write besides its messages and its snapshot. Each part makes the statement longer, and slower. */
export interface CommitParts {
  /** The history was rewritten. */
  readonly view: boolean;
  /** The custom state changed. */
  readonly custom: boolean;
  /** The artifacts changed. */
  readonly artifacts: boolean;
  /** The run has events. */
  readonly journal: boolean;
  /** It ends a detached run, whose pending snapshot is listed already. */
  readonly own: boolean;
}

const types = {
  run: 'bytea',
  attempt: 'integer',
  snapshot: 'bytea',
  parent: 'bytea',
  // Where the state lies that the new one grew from.
  from: 'bigint',
  fromLineage: 'bigint',
  fromBranch: 'bigint',
  fromUpto: 'integer',
  fromView: 'bigint',
  isListed: 'boolean',
  isEnd: 'boolean',
  isMidTurn: 'boolean',
  turn: 'integer',
  event: 'smallint',
  status: 'smallint',
  finish: 'smallint',
  hash: 'bytea',
  usage: 'text',
  totals: 'text',
  error: 'text',
  bodies: 'text[]',
  length: 'integer',
  // A rewritten history, as it is when it goes on in place and when it begins a branch.
  ownFromHere: 'integer',
  ownFromNew: 'integer',
  viewHere: 'text',
  viewNew: 'text',
  common: 'integer',
  viewRefs: 'bigint[]',
  // Documents: the row of one that stays as it was, or what is to be written.
  custom: 'bigint',
  customBody: 'text',
  customHash: 'bytea',
  customPrev: 'bigint',
  list: 'bigint',
  listBody: 'text',
  listHash: 'bytea',
  partHashes: 'bytea[]',
  partBodies: 'text[]',
  knownParts: 'bigint[]',
  eventAttempt: 'integer',
  eventSeq: 'integer',
  eventLast: 'integer',
  eventBody: 'text',
} as const;

type Name = keyof typeof types;

/** A statement that writes all of a turn's end: one round trip and one transaction. */
export interface CommitText {
  readonly text: string;
  /** The values of its parameters in their order. */
  readonly values: Parameters<Name>['values'];
}

/** The statement for these parts. */
export function commitText(d: Dialect, parts: CommitParts): CommitText {
  const { in: p, values } = parameters(types);
  return { text: build(d, p, parts), values };
}

type In = Readonly<Record<Name, string>>;

const build = (d: Dialect, p: In, parts: CommitParts): string => `
  WITH held AS MATERIALIZED (${held(d.now, p, parts)}),
  spot AS MATERIALIZED (SELECT h.*, ${isInPlace(p)} AS in_place FROM held h),
  branch AS (
    INSERT INTO @branches(session, parent, fork, fork_view, fork_snapshot)
    SELECT s.session, ${p.fromBranch}, ${parts.view ? 'NULL, NULL' : `${p.fromUpto}, ${p.fromView}`}, s.line
    FROM spot s WHERE NOT s.in_place RETURNING no),
  place AS MATERIALIZED (
    SELECT s.*, COALESCE(b.no, ${p.fromBranch}) AS branch,
      CASE WHEN s.in_place THEN ${p.fromUpto} ELSE 0 END AS row
    FROM spot s LEFT JOIN branch b ON true),
  rows AS (
    INSERT INTO @messages(id, body)
    SELECT x.branch * ${rowsPerBranch} + x.row + t.n - 1, t.body
    FROM place x CROSS JOIN unnest(${p.bodies}) WITH ORDINALITY t(body, n)),
  ${parts.view ? viewText(p) : ''}
  ${parts.custom || parts.artifacts ? lockText(d, p, parts) : ''}
  ${parts.custom ? customText(p) : ''}
  ${parts.artifacts ? artifactText(p) : ''}
  snapshot AS (${parts.own ? ownSnapshot(p, parts) : snapshot(p, parts)}),
  gone AS (
    DELETE FROM @snapshots s USING held h WHERE s.no IN (h.replaced, h.bare) AND s.idx IS NULL
    RETURNING s.branch, s.custom, s.artifacts),
  trash AS (${trash(parts)}),
  session AS (
    UPDATE @sessions z SET head = s.no, tip = s.no, updated_at = h.now,
      next_index = z.next_index + ${parts.own ? '0' : `CASE WHEN ${p.isListed} THEN 1 ELSE 0 END`}
    FROM held h CROSS JOIN snapshot s WHERE z.no = h.session),
  ${parts.journal ? journalText(p) : ''}
  run_end AS (DELETE FROM @runs r USING held h WHERE r.session = h.session AND ${p.isEnd}),
  run_goes_on AS (
    UPDATE @runs r SET base = s.no, checkpoint = s.no,
      inputs_done = r.inputs_done + CASE WHEN ${p.isMidTurn} THEN 0 ELSE 1 END,
      mid_turn = CASE WHEN ${p.isMidTurn} THEN 1 ELSE 0 END
    FROM held h CROSS JOIN snapshot s WHERE r.session = h.session AND NOT ${p.isEnd})
  SELECT x.now, s.no, x.session_id, s.created_at, x.line, x.line_id, s.idx,
    CASE WHEN x.in_place THEN 1 ELSE 0 END AS in_place, x.branch, s.view, s.custom, s.artifacts,
    ${parts.artifacts ? `(SELECT ${d.rowsAsJson([d.hex('hash'), 'no'])} FROM new_parts)` : 'NULL'} AS new_parts,
    (SELECT count(*) FROM trash) AS discarded
  FROM place x CROSS JOIN snapshot s`;

// The run under its attempt, held together with its session. Gives nothing when the commit is not a usual one: the run
// was lost, or is detached and this is not its end, an unlisted head would be left, a checkpoint would be abandoned, the
// base has gone.
const held = (now: string, p: In, parts: CommitParts): string => `
  SELECT ${now} AS now, r.session, r.id, r.own, r.created_at, z.id AS session_id, z.tip, z.next_index,
    CASE WHEN p.idx IS NULL THEN p.parent ELSE p.no END AS line,
    CASE WHEN p.idx IS NULL THEN pp.id ELSE p.id END AS line_id,
    CASE WHEN h.idx IS NULL THEN h.no END AS replaced,
    CASE WHEN r.checkpoint IS DISTINCT FROM r.base THEN r.checkpoint END AS bare
  FROM @runs r JOIN @sessions z ON z.no = r.session
  LEFT JOIN @snapshots p ON p.id = ${p.parent}
  LEFT JOIN @snapshots pp ON pp.no = p.parent
  LEFT JOIN @snapshots h ON h.no = z.head
  LEFT JOIN @snapshots f ON f.no = ${p.from}
  LEFT JOIN @snapshots o ON o.no = r.own
  WHERE r.id = ${p.run} AND r.attempt = ${p.attempt} AND ${parts.own ? isOwn : 'r.own IS NULL'}
    AND (${p.parent} IS NULL OR (p.session = r.session AND p.status = ${code.succeeded}))
    AND (${p.from} IS NULL OR (f.branch = ${p.fromBranch} AND f.upto = ${p.fromUpto}))
    AND (z.head IS NULL OR h.no = p.no OR h.idx IS NOT NULL)
    AND (r.checkpoint IS NULL OR r.checkpoint = r.base OR r.checkpoint = ${p.from})
    AND (${p.snapshot} = r.id OR NOT EXISTS (SELECT 1 FROM @runs t WHERE t.id = ${p.snapshot}))
    AND NOT EXISTS (SELECT 1 FROM @journal e WHERE e.run = r.id ${parts.journal ? laterEvents(p) : ''})
  FOR UPDATE OF z, r`;

// It was listed where the state that it goes on from would put it now.
const isOwn = `r.own IS NOT NULL
    AND o.parent IS NOT DISTINCT FROM CASE WHEN p.idx IS NULL THEN p.parent ELSE p.no END`;

const laterEvents = (p: In): string => `AND ${isEvent} AND ${p.eventBody} IS NOT NULL
  AND (e.attempt > ${p.eventAttempt} OR (e.attempt = ${p.eventAttempt} AND e.last >= ${p.eventSeq}))`;

const isInPlace = (p: In): string => `COALESCE(h.tip = ${p.from} AND (h.line = ${p.from}
  OR (${p.from} IN (h.replaced, h.bare) AND h.line IS NOT DISTINCT FROM ${p.fromLineage})), false)`;

const snapshot = (p: In, parts: CommitParts): string => `
  INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, finish, state_hash, usage, totals,
    error, branch, upto, view, length, custom, artifacts, created_at, updated_at)
  SELECT ${p.snapshot}, x.session, x.line, CASE WHEN ${p.isListed} THEN x.next_index END, ${p.turn},
    ${p.event}, ${p.status}, ${p.finish}, ${p.hash}, ${p.usage}, ${p.totals}, ${p.error}, x.branch,
    x.row + cardinality(${p.bodies}),
    ${viewNo(p, parts)}, ${p.length}, ${customNo(p, parts)}, ${listNo(p, parts)},
    CASE WHEN ${p.snapshot} = x.id THEN x.created_at ELSE x.now END, x.now
  FROM place x
  RETURNING no, idx, view, custom, artifacts, created_at`;

const ownSnapshot = (p: In, parts: CommitParts): string => `
  UPDATE @snapshots s SET updated_at = x.now, turn = ${p.turn}, event = ${p.event}, status = ${p.status},
    finish = ${p.finish}, state_hash = ${p.hash}, usage = ${p.usage}, totals = ${p.totals}, error = ${p.error},
    branch = x.branch, upto = x.row + cardinality(${p.bodies}),
    view = ${viewNo(p, parts)}, length = ${p.length}, custom = ${customNo(p, parts)}, artifacts = ${listNo(p, parts)}
  FROM place x WHERE s.no = x.own AND s.id = ${p.snapshot} AND ${p.isListed}
  RETURNING s.no, s.idx, s.view, s.custom, s.artifacts, s.created_at`;

const viewNo = (p: In, parts: CommitParts): string =>
  parts.view ? '(SELECT no FROM new_view)' : `CASE WHEN x.in_place THEN ${p.fromView} END`;
const customNo = (p: In, parts: CommitParts): string =>
  parts.custom ? '(SELECT no FROM new_custom)' : p.custom;
const listNo = (p: In, parts: CommitParts): string =>
  parts.artifacts ? '(SELECT no FROM new_list)' : p.list;

const trash = (parts: CommitParts): string => `
  INSERT INTO @trash(kind, no)
  SELECT DISTINCT t.kind, t.no FROM gone g CROSS JOIN place x CROSS JOIN snapshot s
  CROSS JOIN LATERAL (VALUES
    (${trashKind.branch}, CASE WHEN ${parts.view} OR g.branch <> x.branch THEN g.branch END),
    (${trashKind.blob}, CASE WHEN g.custom IS DISTINCT FROM s.custom THEN g.custom END),
    (${trashKind.blob}, CASE WHEN g.artifacts IS DISTINCT FROM s.artifacts THEN g.artifacts END)) t(kind, no)
  WHERE t.no IS NOT NULL ON CONFLICT DO NOTHING RETURNING no`;

const viewText = (p: In): string => `
  new_view AS (
    INSERT INTO @views(branch, own_from, base, common)
    SELECT x.branch, CASE WHEN x.in_place THEN ${p.ownFromHere} ELSE ${p.ownFromNew} END,
      CASE WHEN x.in_place THEN ${p.viewHere} ELSE ${p.viewNew} END, ${p.common}
    FROM place x RETURNING no),
  view_refs AS (
    INSERT INTO @view_refs(branch, view, of)
    SELECT t.branch, v.no, x.branch
    FROM new_view v CROSS JOIN place x CROSS JOIN unnest(${p.viewRefs}) t(branch)
    WHERE t.branch <> x.branch),`;

// Documents are found by their hash, so nobody may be removing any meanwhile. A patch has none.
const lockText = (d: Dialect, p: In, parts: CommitParts): string => `
  blob_lock AS MATERIALIZED (
    ${d.shareBlobs} FROM held ${parts.artifacts ? '' : `WHERE ${p.customHash} IS NOT NULL`}),`;

const shared = '(SELECT count(*) FROM blob_lock) l';
const onConflict =
  'ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING no, hash';

const customText = (p: In): string => `
  new_custom AS (
    INSERT INTO @blobs(hash, prev, body) SELECT ${p.customHash}, ${p.customPrev}, ${p.customBody}
    FROM held CROSS JOIN ${shared} ${onConflict}),`;

const artifactText = (p: In): string => `
  new_parts AS (
    INSERT INTO @blobs(hash, body) SELECT t.hash, t.body
    FROM held CROSS JOIN ${shared} CROSS JOIN unnest(${p.partHashes}, ${p.partBodies}) t(hash, body)
    ${onConflict}),
  new_list AS (
    INSERT INTO @blobs(hash, body) SELECT ${p.listHash}, ${p.listBody}
    FROM held CROSS JOIN ${shared} ${onConflict}),
  links AS (
    INSERT INTO @blob_parts(part, list)
    SELECT t.part, a.no FROM new_list a
    CROSS JOIN (SELECT no AS part FROM new_parts UNION SELECT unnest(${p.knownParts})) t
    ON CONFLICT DO NOTHING),`;

const journalText = (p: In): string => `
  events AS (
    INSERT INTO @journal(run, session, attempt, seq, last, body)
    SELECT h.id, h.session, ${p.eventAttempt}, ${p.eventSeq}, ${p.eventLast}, ${p.eventBody}
    FROM held h WHERE ${p.eventBody} IS NOT NULL),
  steps AS (
    DELETE FROM @journal j USING held h
    WHERE j.run = h.id AND j.attempt = ${journal.steps} AND ${p.isEnd}),
  ended AS (
    INSERT INTO @journal(run, session, attempt, seq, last, body, ended_at)
    SELECT h.id, h.session, ${journal.end}, 0, 0, '[]', h.now FROM held h
    WHERE ${p.isEnd} AND (${p.eventBody} IS NOT NULL
      OR EXISTS (SELECT 1 FROM @journal e WHERE e.run = h.id AND ${isEvent}))),`;
