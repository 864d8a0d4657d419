import type { JsonObject } from '../../../core/json/json.ts';
import type { Page, SessionInfo } from '../../../protocol/session.ts';
import type { ListOptions, Scope } from '../../contract/store.ts';
import { notFound } from '../../rules/errors.ts';
import { checkMetadata, checkTitle } from '../../rules/size-limits.ts';
import type { Cipher } from '../content/cipher.ts';
import { homeIn, sessionPlace } from '../content/places.ts';
import { all, first, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { checkLimit, fromCursor, type Key, toCursor } from '../values/cursor.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';
import {
  contentOf,
  type SessionRow,
  sessionColumns,
  sessionTables,
  toSessionInfo,
} from './session-row.ts';

const selectSession = statement<SessionRow>(
  'session_get',
  (d) => `
    SELECT ${d.now} AS now, ${sessionColumns} FROM ${sessionTables}
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3`,
);
const selectSessions = statement<SessionRow>(
  'session_list',
  (d) => `
    SELECT ${d.now} AS now, ${sessionColumns} FROM ${sessionTables}
    WHERE z.owner = $1 AND z.agent = $2 AND (z.updated_at < $3 OR (z.updated_at = $3 AND z.id > $4))
    ORDER BY z.updated_at DESC, z.id LIMIT $5`,
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

/** The row of a session. */
export function* findSession(scope: Scope, sessionId: string): Plan<SessionRow | undefined> {
  return yield* first(selectSession, ...scopeKey(scope), sessionKey(sessionId));
}

/** What is known of a session. */
export function* getSession(
  scope: Scope,
  sessionId: string,
  { cipher }: StateContext,
): Plan<SessionInfo | undefined> {
  const row = yield* findSession(scope, sessionId);
  return row && toSessionInfo(row, cipher);
}

// Later than any session.
const end: Key = [Number.MAX_SAFE_INTEGER, ''];

// Titles and metadata may be sealed, so they are looked through here and not in the database.
const batch = 200;

/** Sessions, newest first. */
export function* listSessions(
  scope: Scope,
  { limit = 50, cursor, query = '' }: ListOptions & { readonly query?: string },
  { cipher }: StateContext,
): Plan<Page<SessionInfo>> {
  checkLimit(limit);
  const wanted = query.toLowerCase();
  const found: SessionRow[] = [];
  const size = wanted === '' ? limit + 1 : Math.max(batch, limit + 1);
  let after = fromCursor(cursor) ?? end;
  while (found.length <= limit) {
    const rows = yield* all(selectSessions, ...scopeKey(scope), ...after, size);
    found.push(...rows.filter((row) => matches(row, wanted, cipher)));
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) break;
    after = [last.updated_at, last.id];
  }
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const infos = items.map((row) => toSessionInfo(row, cipher));
  if (last === undefined || found.length <= limit) return { items: infos };
  return { items: infos, next: toCursor([last.updated_at, last.id]) };
}

function matches(row: SessionRow, query: string, cipher: Cipher): boolean {
  if (query === '') return true;
  const texts = [
    row.id,
    row.title === null ? '' : String(contentOf(row, 'title', cipher)),
    row.metadata === null ? '' : JSON.stringify(contentOf(row, 'metadata', cipher)),
  ];
  return texts.some((text) => text.toLowerCase().includes(query));
}

/** Changes a session's title and metadata. */
export function* updateSession(
  scope: Scope,
  sessionId: string,
  change: { readonly title?: string | null; readonly metadata?: JsonObject | null },
  context: StateContext,
): Plan<SessionInfo> {
  const row = yield* findSession(scope, sessionId);
  if (row === undefined) throw notFound('session', sessionId);
  const { title, metadata } = change;
  const { cipher } = context;
  const home = homeIn(scope, sessionId);
  if (title !== undefined) {
    const text = title === null ? null : checkTitle(title);
    yield* run(updateTitle, row.row_id, sealed(text, sessionPlace('title', home), cipher));
  }
  if (metadata !== undefined) {
    const json = metadata === null ? null : checkMetadata(metadata);
    yield* run(updateMetadata, row.row_id, sealed(json, sessionPlace('metadata', home), cipher));
  }
  yield* run(touch, row.row_id);
  const after = yield* findSession(scope, sessionId);
  return toSessionInfo(after ?? row, cipher);
}

/** A value as it is stored. */
export function sealed(value: JsonObject | string | null, place: string, cipher: Cipher): SqlValue {
  return value === null ? null : cipher.encrypt(JSON.stringify(value), place);
}
