import { defined, type JsonObject } from '../../../core/json/json.ts';
import type { Page, SessionInfo } from '../../../protocol/session.ts';
import type { ListOptions, Scope, SessionChange, SessionFilter } from '../../contract/store.ts';
import { notFound } from '../../rules/errors.ts';
import { checkLimit, firstPage, parseCursor } from '../../rules/page.ts';
import { matchesQuery, passesFilter } from '../../rules/session-filter.ts';
import { checkMetadata } from '../../rules/size-limits.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson, parseStored, sealed } from '../content/open-json.ts';
import { homeIn, sessionPlace } from '../content/places.ts';
import {
  all,
  first,
  type Plan,
  run,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { nameUntitled } from '../runs/commit.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/open-run.ts';
import { iso, uuidText } from '../values/bytes.ts';
import { code, fromFinish, fromStatus } from '../values/codes.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';
import { sessionsWithWords } from './search.ts';

/** Columns of the session `z` with its head `h` and its open run `r`. */
export const sessionColumns = `
  z.row_id, z.id, z.owner, z.agent, z.title, z.metadata, z.forked_from, z.started_by_agent, z.started_by_session,
  z.started_by_snapshot, z.created_at, z.updated_at, h.id AS head_id, h.turn AS head_turn,
  ${holderColumns}`;

export const sessionTables = `@sessions z
  LEFT JOIN @snapshots h ON h.row_id = z.head
  LEFT JOIN @runs r ON r.session = z.row_id`;

export interface SessionRow extends HolderRow {
  readonly row_id: number;
  readonly id: string;
  readonly owner: string;
  readonly agent: string;
  readonly title: SqlValue;
  readonly metadata: SqlValue;
  readonly forked_from: string | null;
  readonly started_by_agent: string | null;
  readonly started_by_session: string | null;
  readonly started_by_snapshot: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly head_id: Uint8Array | null;
  readonly head_turn: number | null;
}

/** A session without its state. */
export function toSessionInfo(row: SessionRow, cipher: Cipher): SessionInfo {
  return defined({
    sessionId: row.id,
    agent: row.agent,
    title: titleOf(row, cipher),
    metadata: metadataOf(row, cipher),
    headId: row.head_id === null ? undefined : uuidText(row.head_id),
    turnCount: row.head_turn === null ? 0 : row.head_turn + 1,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    running: isHeld(row) && row.run_id !== null ? uuidText(row.run_id) : undefined,
    forkedFrom: forkedFromOf(row),
    startedBy: startedByOf(row),
  });
}

function titleOf(row: SessionRow, cipher: Cipher): string | undefined {
  return contentOf(row, 'title', cipher) as string | undefined;
}

function metadataOf(row: SessionRow, cipher: Cipher): JsonObject | undefined {
  return contentOf(row, 'metadata', cipher) as JsonObject | undefined;
}

function contentOf(row: SessionRow, column: 'title' | 'metadata', cipher: Cipher): unknown {
  if (row[column] === null) return undefined;
  const home = { owner: row.owner, agent: row.agent, sessionId: row.id };
  return openJson(row[column], sessionPlace(column, home), cipher);
}

function forkedFromOf({ forked_from: text }: SessionRow): SessionInfo['forkedFrom'] {
  if (text === null) return undefined;
  return parseStored(text, () => 'sessions.forked_from') as SessionInfo['forkedFrom'];
}

function startedByOf(row: SessionRow): SessionInfo['startedBy'] {
  const { started_by_agent: agent, started_by_session: sessionId } = row;
  if (agent === null || sessionId === null) return undefined;
  return defined({ agent, sessionId, snapshotId: row.started_by_snapshot ?? undefined });
}

const selectSession = statement<SessionRow>(
  'session_get',
  (d) => `
    SELECT ${d.now} AS now, ${sessionColumns} FROM ${sessionTables}
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3`,
);
const selecting = (name: string, condition: string): Statement<SessionRow> =>
  statement(
    name,
    (d) => `
    SELECT ${d.now} AS now, ${sessionColumns} FROM ${sessionTables}
    WHERE z.owner = $1 AND z.agent = $2 AND (z.updated_at < $3 OR (z.updated_at = $3 AND z.id > $4)) ${condition}
    ORDER BY z.updated_at DESC, z.id LIMIT $5`,
  );
const selectSessions = selecting('session_list', '');
// By an index of the interrupted snapshots, so that the other sessions are not read.
const selectWaiting = selecting(
  'session_list_waiting',
  `AND z.row_id IN (SELECT w.session FROM @snapshots w WHERE w.finish = ${code.interrupted})
    AND h.finish = ${code.interrupted}`,
);
// The listed snapshot with the highest index is the last turn that came to an end.
const selectFacts = statement<FactsRow>(
  'session_list_facts',
  (d) => `
    SELECT z.row_id, h.finish AS head_finish, h.updated_at AS head_updated, n.status AS last_status,
      n.updated_at AS last_updated, CASE WHEN EXISTS (
        SELECT 1 FROM @snapshots l WHERE l.session = z.row_id AND l.label IS NOT NULL) THEN 1 ELSE 0 END AS labelled
    FROM @sessions z LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @snapshots n ON n.session = z.row_id
      AND n.idx = (SELECT MAX(x.idx) FROM @snapshots x WHERE x.session = z.row_id)
    WHERE z.row_id ${d.integers('$1')}`,
);

interface FactsRow {
  readonly row_id: number;
  readonly head_finish: number | null;
  readonly head_updated: number | null;
  readonly last_status: number | null;
  readonly last_updated: number | null;
  readonly labelled: number;
}

// Jumps from owner to owner in an index, so that their sessions are not read.
const selectOwners = statement<{ readonly owner: string }>(
  'session_owners',
  `WITH RECURSIVE found(owner, n) AS (
      SELECT (SELECT MIN(owner) FROM @sessions WHERE owner > $1), 1
      UNION ALL
      SELECT (SELECT MIN(z.owner) FROM @sessions z WHERE z.owner > f.owner), f.n + 1
      FROM found f WHERE f.owner IS NOT NULL AND f.n < $2)
    SELECT owner FROM found WHERE owner IS NOT NULL ORDER BY owner`,
);

const updateTitle = statement('session_title', 'UPDATE @sessions SET title = $2 WHERE row_id = $1');
const updateMetadata = statement(
  'session_metadata',
  'UPDATE @sessions SET metadata = $2 WHERE row_id = $1',
);
const touch = statement(
  'session_touch',
  (d) => `UPDATE @sessions SET updated_at = ${d.now} WHERE row_id = $1`,
);

export function* findSession(scope: Scope, sessionId: string): Plan<SessionRow | undefined> {
  return yield* first(selectSession, ...scopeKey(scope), sessionKey(sessionId));
}

export function* getSession(
  scope: Scope,
  sessionId: string,
  { cipher }: StateContext,
): Plan<SessionInfo | undefined> {
  const row = yield* findSession(scope, sessionId);
  return row && toSessionInfo(row, cipher);
}

// Later than any session.
const end = [Number.MAX_SAFE_INTEGER, ''] as const;

// Titles and metadata may be sealed, so they are looked through here and not in the database.
const batch = 200;

/** Sessions, newest first. */
export function* listSessions(
  scope: Scope,
  { limit = 50, cursor, ...filter }: ListOptions & SessionFilter,
  context: StateContext,
): Plan<Page<SessionInfo>> {
  checkLimit(limit);
  const { cipher } = context;
  const { query = '', failed, waiting, labelled } = filter;
  const isFiltered = failed === true || waiting === true || labelled === true;
  const found: SessionRow[] = [];
  const size = query === '' && !isFiltered ? limit + 1 : Math.max(batch, limit + 1);
  const withText = yield* sessionsWithWords(scope, query, context);
  let after: readonly [number, string] = parseCursor(cursor) ?? end;
  while (found.length <= limit) {
    const select = waiting === true ? selectWaiting : selectSessions;
    const rows = yield* all(select, ...scopeKey(scope), ...after, size);
    const passing = isFiltered ? yield* filtered(rows, filter) : rows;
    found.push(...passing.filter((row) => matches(row, query, withText, cipher)));
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) break;
    after = [last.updated_at, last.id];
  }
  const page = firstPage(found, (row) => [row.updated_at, row.id], limit);
  return { ...page, items: page.items.map((row) => toSessionInfo(row, cipher)) };
}

/** The owners of sessions, ascending. */
export function* listOwners({ limit = 50, cursor }: ListOptions): Plan<Page<string>> {
  checkLimit(limit);
  // An empty owner is none.
  const [, after] = parseCursor(cursor) ?? [0, ''];
  const rows = yield* all(selectOwners, after, limit + 1);
  const owners = rows.map(({ owner }) => owner);
  return firstPage(owners, (owner) => [0, owner], limit);
}

function* filtered(
  rows: readonly SessionRow[],
  filter: SessionFilter,
): Plan<readonly SessionRow[]> {
  const ids = JSON.stringify(rows.map((row) => row.row_id));
  const facts = new Map((yield* all(selectFacts, ids)).map((row) => [row.row_id, row]));
  return rows.filter((row) => {
    const fact = facts.get(row.row_id);
    return fact !== undefined && passesFilter(filter, { ...factsOf(fact), isRunning: isHeld(row) });
  });
}

function factsOf({ head_finish, head_updated, last_status, last_updated, labelled }: FactsRow) {
  return {
    head:
      head_updated === null
        ? undefined
        : defined({ updatedAt: head_updated, finishReason: fromFinish(head_finish) }),
    last:
      last_status === null || last_updated === null
        ? undefined
        : { status: fromStatus(last_status), updatedAt: last_updated },
    isLabelled: () => labelled === 1,
  };
}

function matches(
  row: SessionRow,
  query: string,
  withText: ReadonlySet<number>,
  cipher: Cipher,
): boolean {
  if (query === '' || withText.has(row.row_id)) return true;
  const [title, metadata] = [titleOf(row, cipher), metadataOf(row, cipher)];
  return matchesQuery(query, { id: row.id, title, metadata, text: () => '' });
}

export function* updateSession(
  scope: Scope,
  sessionId: string,
  change: SessionChange,
  context: StateContext,
): Plan<SessionInfo> {
  const row = yield* findSession(scope, sessionId);
  if (row === undefined) throw notFound('session', sessionId);
  const { title, metadata, defaultTitle } = change;
  const { cipher } = context;
  const home = homeIn(scope, sessionId);
  let after: SessionRow | undefined = row;
  if (defaultTitle !== undefined) {
    const text = sealed(defaultTitle, sessionPlace('title', home), cipher);
    if (row.title === null) {
      yield* run(nameUntitled, row.row_id, text);
      after = { ...row, title: text };
    }
  }
  if (title !== undefined) {
    yield* run(updateTitle, row.row_id, sealed(title, sessionPlace('title', home), cipher));
  }
  if (metadata !== undefined) {
    const json = metadata === null ? null : checkMetadata(metadata);
    yield* run(updateMetadata, row.row_id, sealed(json, sessionPlace('metadata', home), cipher));
  }
  if (title !== undefined || metadata !== undefined) {
    yield* run(touch, row.row_id);
    after = yield* findSession(scope, sessionId);
  }
  return toSessionInfo(after ?? row, cipher);
}
