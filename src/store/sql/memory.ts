import { isSnapshotId } from '../../protocol/ids.ts';
import type {
  FoundMemoryNote,
  MemoryExport,
  MemoryPage,
  MemoryPlace,
  MemorySession,
  MemorySpan,
  MemorySupport,
  MemoryVersion,
  MemoryWrite,
  NewMemoryVersion,
  Scope,
  TurnMemoryVersion,
} from '../contract/store.ts';
import { emptyNote, memoryPage } from '../rules/memory.ts';
import type { Cipher } from './content/cipher.ts';
import { openJson, parseStored, sealed } from './content/open-json.ts';
import { memoryPlace, pendingPlace } from './content/places.ts';
import { all, first, one, type Plan, run, type SqlValue, statement } from './database/query.ts';
import type { SqlContext } from './sql-context.ts';
import { uuidBytes, uuidText } from './values/bytes.ts';
import { scopeKey, sessionKey } from './values/scope.ts';

// Writing ----------------------------------------------------------------------------------------

const insertVersion = statement(
  'memory_add',
  (d) => `
    INSERT INTO @memory(scope, id, entry, owner, session, snapshot, message, seq, created_at, body)
    VALUES($1, $2, $3, $4, $5, $6, $7, $8, COALESCE($9, ${d.now}), $10)`,
);
// Only turns of the session write to its lane, and a fork may have given it another one since this turn has looked.
const putPlace = statement(
  'memory_place',
  `INSERT INTO @memory_sessions(session, family, lane) VALUES($1, $2, $3)
   ON CONFLICT(session) DO UPDATE SET lane = excluded.lane`,
);
const putNote = statement(
  'memory_note',
  (d) => `
    INSERT INTO @memory_notes(snapshot, session, path, given, pending, created_at) VALUES($1, $2, $3, $4, $5, COALESCE($6, ${d.now}))
    ON CONFLICT(snapshot) DO UPDATE SET path = excluded.path, given = excluded.given, pending = excluded.pending,
      created_at = excluded.created_at`,
);

/** The statements of a commit with memory. */
export const memoryStatements = [insertVersion, putPlace, putNote];

interface Held {
  readonly session: number;
  readonly owner: string;
}

/** Saves the part of a commit or a checkpoint that belongs to memory. */
export function* addMemory(
  { session, owner }: Held,
  snapshotId: string,
  write: MemoryWrite | undefined,
  cipher: Cipher,
): Plan<void> {
  if (write === undefined) return;
  const { place, versions, note } = write;
  const snapshot = uuidBytes(snapshotId);
  if (place !== undefined) yield* run(putPlace, session, place.family, place.lane);
  for (const version of versions) {
    const { scope, id, entry, message, seq } = version;
    const body = bodyOf(version, cipher);
    const source = [session, snapshot, message, seq] as const;
    yield* run(insertVersion, scope, id, entry, owner, ...source, null, body);
  }
  const { path, given, pending } = note;
  const texts = [JSON.stringify(path), JSON.stringify(given)];
  const kept = sealed(pending ?? null, pendingPlace(snapshotId), cipher);
  yield* run(putNote, snapshot, session, ...texts, kept, null);
}

function bodyOf({ scope, entry, id, value }: NewMemoryVersion, cipher: Cipher): SqlValue {
  if (value === undefined) return null;
  return cipher.encrypt(JSON.stringify(value), memoryPlace(scope, entry, id));
}

const forkSession = statement(
  'memory_fork_family',
  `INSERT INTO @memory_sessions(session, family, lane) VALUES($1, $2, $3) ON CONFLICT(session) DO NOTHING`,
);
const forkPlace = statement(
  'memory_fork',
  `INSERT INTO @memory_sessions(session, family, lane)
   SELECT CAST($1 AS bigint), family, CAST($3 AS text) FROM @memory_sessions WHERE session = $2`,
);
/** Gives a fork the memory of the snapshot that it was made of. */
export function* forkMemory(
  source: { readonly session: number; readonly snapshotId: string },
  fork: { readonly session: number; readonly snapshotId: string; readonly owner: string },
  place: MemoryPlace,
  cipher: Cipher,
): Plan<void> {
  yield* run(forkSession, source.session, place.family, place.lane);
  // The id of its first snapshot names its lane.
  yield* run(forkPlace, fork.session, source.session, fork.snapshotId);
  const path = yield* pathOf(source.snapshotId);
  if (path.length === 0) return;
  const write = { versions: [], note: { path, given: [] } };
  yield* addMemory(fork, fork.snapshotId, write, cipher);
}

const deleteEntries = statement(
  'memory_remove',
  (d) => `DELETE FROM @memory WHERE scope = $1 AND entry ${d.texts('$2')}`,
);
const deleteOwned = statement(
  'memory_erase',
  `DELETE FROM @memory WHERE row_id IN (SELECT m.row_id FROM @memory x
     JOIN @memory m ON m.entry = x.entry AND m.row_id >= x.row_id WHERE x.owner = $1)`,
);
const deleteNotes = statement(
  'memory_prune',
  (d) => `
    DELETE FROM @memory_notes WHERE snapshot IN (SELECT n.snapshot FROM @memory_notes n
      WHERE n.created_at < ${d.now} - 86400000 AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.id = n.snapshot)
      AND NOT EXISTS (SELECT 1 FROM @runs r WHERE r.id = n.snapshot))`,
);

/** Deletes what came from an owner. What came from a session goes with the session. */
export function* eraseMemory(owner: string): Plan<void> {
  yield* run(deleteOwned, owner);
}

/** Deletes the notes of snapshots that have been removed. */
export function* pruneNotes(): Plan<void> {
  yield* run(deleteNotes);
}

// Reading ----------------------------------------------------------------------------------------

interface VersionRow {
  readonly row_id: number;
  readonly id: string;
  readonly entry: string;
  readonly owner: string;
  readonly created_at: number;
  readonly body: SqlValue;
  readonly snapshot: Uint8Array | null;
  readonly message: number | null;
  readonly seq: number | null;
  readonly agent: string | null;
  readonly session_id: string | null;
  readonly family: string | null;
  readonly lane: string | null;
}

const selectVersions = statement<VersionRow>(
  'memory_read',
  `SELECT m.row_id, m.id, m.entry, m.owner, m.created_at, m.body, m.snapshot, m.message, m.seq,
     z.agent, z.id AS session_id, f.family, f.lane
   FROM @memory m LEFT JOIN @sessions z ON z.row_id = m.session LEFT JOIN @memory_sessions f ON f.session = m.session
   WHERE m.scope = $1 AND m.row_id > $2 ORDER BY m.row_id LIMIT ${memoryPage}`,
);
const countVersions = statement<{ count: number }>(
  'memory_count',
  'SELECT CAST(COUNT(*) AS bigint) AS count FROM @memory WHERE scope = $1',
);

function* readPage(scope: string, after: number, cipher: Cipher): Plan<MemoryPage> {
  const rows = yield* all(selectVersions, scope, after);
  const versions = rows.map((row) => toVersion(scope, row, cipher));
  if (rows.length === memoryPage) return { versions };
  const { count } = yield* one(countVersions, scope);
  return { versions, count };
}

function toVersion(scope: string, row: VersionRow, cipher: Cipher): MemoryVersion {
  const { row_id: no, id, entry, owner, created_at: createdAt, body } = row;
  const { snapshot, message, seq, agent, session_id: sessionId, family, lane } = row;
  const isOfTurn =
    snapshot !== null && agent !== null && sessionId !== null && family !== null && lane !== null;
  const source = isOfTurn && {
    ...{ agent, sessionId, family, lane },
    ...{ snapshotId: uuidText(snapshot), message: message ?? 0, seq: seq ?? 0 },
  };
  return {
    ...{ no, id, entry, createdAt },
    ...(owner !== '' && { owner }),
    ...(body !== null && {
      value: openJson(body, memoryPlace(scope, entry, id), cipher) as MemoryVersion['value'] & {},
    }),
    ...(source && { source }),
  };
}

const selectSession = statement<{
  family: string | null;
  lane: string | null;
  last: number | null;
  head: Uint8Array | null;
}>(
  'memory_session',
  `SELECT f.family, f.lane, h.id AS head, (SELECT MAX(m.seq) FROM @memory m WHERE m.session = z.row_id) AS last
   FROM @sessions z LEFT JOIN @memory_sessions f ON f.session = z.row_id LEFT JOIN @snapshots h ON h.row_id = z.head
   WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3`,
);

function* readSession(scope: Scope, sessionId: string): Plan<MemorySession> {
  const row = yield* first(selectSession, ...scopeKey(scope), sessionKey(sessionId));
  const { family, lane, last, head } = row ?? { family: null, lane: null, last: null, head: null };
  return {
    last: last ?? 0,
    ...(family !== null && lane !== null && { family, lane }),
    ...(head !== null && { headId: uuidText(head) }),
  };
}

interface NoteRow {
  readonly path: string | null;
  readonly given: string | null;
  readonly pending: SqlValue;
  readonly family: string | null;
  readonly created_at: number;
}

const selectOwnNote = statement<NoteRow>(
  'memory_own_note',
  `SELECT n.path, n.given, n.pending, n.created_at, f.family FROM @memory_notes n
   JOIN @sessions z ON z.row_id = n.session LEFT JOIN @memory_sessions f ON f.session = n.session
   WHERE n.snapshot = $1 AND z.owner = $2`,
);
// An agent that had no memory for a while, or an edit, leaves snapshots without notes.
const ancestors = `
  WITH RECURSIVE up(row_id, id, parent, depth) AS (
    SELECT s.row_id, s.id, s.parent, 0 FROM @snapshots s WHERE s.id = $1
    UNION ALL
    SELECT p.row_id, p.id, p.parent, up.depth + 1 FROM up JOIN @snapshots p ON p.row_id = up.parent
    WHERE NOT EXISTS (SELECT 1 FROM @memory_notes n WHERE n.snapshot = up.id))`;
const selectNearest = statement<{ path: string }>(
  'memory_nearest',
  `${ancestors} SELECT n.path FROM up JOIN @memory_notes n ON n.snapshot = up.id ORDER BY up.depth DESC LIMIT 1`,
);
const selectBare = statement<{ family: string | null; created_at: number }>(
  'memory_bare',
  `SELECT s.created_at, f.family FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
   LEFT JOIN @memory_sessions f ON f.session = s.session WHERE s.id = $1 AND z.owner = $2`,
);

/** The path to a snapshot: its own, or that of its nearest ancestor that has one. */
function* pathOf(snapshotId: string): Plan<readonly MemorySpan[]> {
  const id = uuidBytes(snapshotId);
  const row = yield* first(selectNearest, id);
  return row === undefined ? emptyNote.path : toPath(row.path);
}

function toPath(text: string): readonly MemorySpan[] {
  return parseStored(text, () => 'memory_notes.path') as readonly MemorySpan[];
}

function* readNote(
  owner: string | undefined,
  snapshotId: string,
  cipher: Cipher,
): Plan<FoundMemoryNote | undefined> {
  if (!isSnapshotId(snapshotId)) return undefined;
  const id = uuidBytes(snapshotId);
  const found = yield* first(selectOwnNote, id, ownerKey(owner));
  const bare = found ?? (yield* first(selectBare, id, ownerKey(owner)));
  if (bare === undefined) return undefined;
  const pending = found?.pending ?? null;
  return {
    path: found?.path == null ? yield* pathOf(snapshotId) : toPath(found.path),
    given: parseStored(found?.given ?? '[]', () => 'memory_notes.given') as readonly string[],
    ...(pending !== null && {
      pending: openJson(pending, pendingPlace(snapshotId), cipher) as readonly TurnMemoryVersion[],
    }),
    ...(bare.family !== null && { family: bare.family }),
    createdAt: bare.created_at,
  };
}

const selectHeads = statement<{ family: string; path: string | null; head: Uint8Array }>(
  'memory_heads',
  (d) => `
    SELECT f.family, n.path, h.id AS head FROM @memory_sessions f JOIN @sessions z ON z.row_id = f.session
    JOIN @snapshots h ON h.row_id = z.head LEFT JOIN @memory_notes n ON n.snapshot = h.id WHERE f.family ${d.texts('$1')}`,
);

function* readHeads(families: readonly string[]): Plan<Map<string, (readonly MemorySpan[])[]>> {
  const paths = new Map<string, (readonly MemorySpan[])[]>();
  if (families.length === 0) return paths;
  for (const { family, path, head } of yield* all(selectHeads, JSON.stringify(families))) {
    const known = paths.get(family) ?? [];
    known.push(path === null ? yield* pathOf(uuidText(head)) : toPath(path));
    paths.set(family, known);
  }
  return paths;
}

const selectNumber = statement<{ row_id: number; family: string | null; lane: string | null }>(
  'memory_number',
  `SELECT z.row_id, f.family, f.lane FROM @sessions z LEFT JOIN @memory_sessions f ON f.session = z.row_id
   WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3`,
);
const selectWritten = statement<VersionRow & { scope: string }>(
  'memory_written',
  `SELECT m.scope, m.row_id, m.id, m.entry, m.owner, m.created_at, m.body, m.snapshot, m.message, m.seq
   FROM @memory m WHERE m.session = $1 ORDER BY m.row_id`,
);
const selectNotes = statement<{
  snapshot: Uint8Array;
  path: string;
  given: string;
  created_at: number;
}>(
  'memory_notes',
  'SELECT snapshot, path, given, created_at FROM @memory_notes WHERE session = $1 ORDER BY created_at',
);

function* exportSession(
  scope: Scope,
  sessionId: string,
  cipher: Cipher,
): Plan<MemoryExport | undefined> {
  const row = yield* first(selectNumber, ...scopeKey(scope), sessionKey(sessionId));
  if (row === undefined) return undefined;
  const versions = yield* all(selectWritten, row.row_id);
  const notes = yield* all(selectNotes, row.row_id);
  const [oldest] = notes;
  if (row.family === null && oldest === undefined) return undefined;
  // A session that has only read gets its place with the import.
  const own = uuidText(oldest?.snapshot ?? new Uint8Array(16));
  return {
    family: row.family ?? own,
    lane: row.lane ?? own,
    versions: versions.map((each) => {
      const { no: _, owner: __, source: ___, ...version } = toVersion(each.scope, each, cipher);
      const { scope: key, snapshot, message, seq } = each;
      const snapshotId = uuidText(snapshot ?? new Uint8Array());
      return { ...version, scope: key, snapshotId, message: message ?? 0, seq: seq ?? 0 };
    }),
    notes: notes.map(({ snapshot, path, given, created_at: createdAt }) => ({
      snapshotId: uuidText(snapshot),
      path: toPath(path),
      given: parseStored(given, () => 'memory_notes.given') as readonly string[],
      createdAt,
    })),
  };
}

function* importSession(
  scope: Scope,
  sessionId: string,
  { family, lane, versions, notes }: MemoryExport,
  cipher: Cipher,
): Plan<void> {
  const [owner] = scopeKey(scope);
  const row = yield* first(selectNumber, ...scopeKey(scope), sessionKey(sessionId));
  if (row === undefined) return;
  const { row_id: session } = row;
  yield* run(putPlace, session, family, lane);
  for (const version of versions) {
    const { scope: key, id, entry, snapshotId, message, seq, createdAt } = version;
    const source = [session, uuidBytes(snapshotId), message, seq] as const;
    const body = bodyOf(version, cipher);
    yield* run(insertVersion, key, id, entry, owner, ...source, createdAt, body);
  }
  for (const { snapshotId, path, given, createdAt } of notes) {
    const texts = [JSON.stringify(path), JSON.stringify(given)];
    yield* run(putNote, uuidBytes(snapshotId), session, ...texts, null, createdAt);
  }
}

/** An owner as a column. A name that cannot be one owns nothing. */
function ownerKey(owner: string | undefined): string {
  return owner === undefined ? '' : sessionKey(owner) || '\u0001';
}

/** Memory in a SQL database. */
export function memorySupport({ db, cipher }: SqlContext): MemorySupport {
  return {
    read: ({ key }, after) => db.read(() => readPage(key, after, cipher)),
    async add(version, owner) {
      const { scope, id, entry } = version;
      // The hashes and keys of an encrypted store are known once it is open.
      await db.open();
      const body = bodyOf(version, cipher);
      const nothing = [null, null, null, null, null] as const;
      await db.write(() => run(insertVersion, scope, id, entry, ownerKey(owner), ...nothing, body));
    },
    async remove({ key }, entries) {
      await db.write(() => run(deleteEntries, key, JSON.stringify(entries)));
      await db.scrub?.();
    },
    session: (scope, sessionId) => db.read(() => readSession(scope, sessionId)),
    note: (owner, snapshotId) => db.read(() => readNote(owner, snapshotId, cipher)),
    heads: (families) => db.read(() => readHeads(families)),
    exportSession: (scope, sessionId) => db.read(() => exportSession(scope, sessionId, cipher)),
    importSession: (scope, sessionId, read) =>
      db.write(() => importSession(scope, sessionId, read, cipher)),
  };
}
