import { hasStatus } from '../../../core/error.ts';
import type { Scope } from '../../contract/store.ts';
import { queryWords, searchTextOf } from '../../rules/session-filter.ts';
import { all, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { readSnapshot } from '../snapshots/locate.ts';
import { scopeKey } from '../values/scope.ts';

// A head is never changed, so its number says whether the words of a session are still those of its messages.
const selectOutdated = statement<{ row_id: number; id: string; head: number }>(
  'search_outdated',
  `SELECT z.row_id, z.id, z.head FROM @sessions z LEFT JOIN @search x ON x.session = z.row_id
   WHERE z.owner = $1 AND z.agent = $2 AND z.head IS NOT NULL AND (x.head IS NULL OR x.head <> z.head)
   ORDER BY z.row_id DESC LIMIT $3`,
);
const putWords = statement(
  'search_put',
  (d) => `INSERT INTO @search(session, head, words) VALUES($1, $2, ${d.words('$3')})
    ON CONFLICT(session) DO UPDATE SET head = excluded.head, words = excluded.words`,
);
const selectMatching = statement<{ row_id: number }>(
  'search_matching',
  (
    d,
  ) => `SELECT z.row_id FROM @search x JOIN @sessions z ON z.row_id = x.session AND z.head = x.head
    WHERE z.owner = $1 AND z.agent = $2 AND ${d.hasWords('x', '$3')}`,
);
const deleteAll = statement('search_clear', 'DELETE FROM @search');

/** Sessions that are read in one transaction. */
const batch = 25;

/** Whether a query looks at the text of messages. Under encryption there is no index, because it would hold the text in clear. */
export function searchesText(query: string | undefined, { cipher }: StateContext): boolean {
  return query !== undefined && cipher.keyId === undefined && queryWords(query).length > 0;
}

/** Brings the index of some sessions of a scope up to date. Gives whether there may be more. */
export function* indexSome(scope: Scope, context: StateContext): Plan<boolean> {
  const outdated = yield* all(selectOutdated, ...scopeKey(scope), batch);
  for (const { row_id: rowId, id: sessionId, head } of outdated) {
    yield* run(putWords, rowId, head, yield* readWords(scope, sessionId, context));
  }
  return outdated.length === batch;
}

function* readWords(scope: Scope, sessionId: string, context: StateContext): Plan<string> {
  try {
    const snapshot = yield* readSnapshot(scope, { sessionId }, context);
    return searchTextOf(snapshot?.state?.messages ?? []).trimStart();
  } catch (error) {
    // A damaged session is found by `verify`, not by a search, which the other sessions can still answer.
    if (hasStatus(error, 'DATA_LOSS')) return '';
    throw error;
  }
}

/** The sessions of a scope in whose messages each word of a query begins a word. */
export function* sessionsWithWords(
  scope: Scope,
  query: string,
  context: StateContext,
): Plan<ReadonlySet<number>> {
  if (!searchesText(query, context)) return none;
  // The words are letters and digits: neither database takes one for an operator.
  const terms = JSON.stringify(queryWords(query));
  const rows = yield* all(selectMatching, ...scopeKey(scope), terms);
  return new Set(rows.map((row) => row.row_id));
}

export function* clearSearch(): Plan<void> {
  yield* run(deleteAll);
}

const none: ReadonlySet<number> = new Set();
