import type { Page, SessionInfo } from '../../protocol/session.ts';
import type {
  ListOptions,
  Scope,
  SessionFilter,
  TimelineSupport,
} from '../../store/contract/store.ts';
import { checkLimit } from '../../store/rules/page.ts';
import { checkQuery, matchesQuery } from '../../store/rules/session-filter.ts';

/** How many sessions a search reads at a time. */
const batchSize = 200;

/**
 * Lists sessions of an agent with a transform. A query is compared with what callers may see of a session: its id, title and
 * metadata. The store searches the original, so its hits would tell what the transform hides. Reads the sessions of the
 * owner up to the last hit of the page.
 */
export async function listShown(
  sessions: TimelineSupport,
  scope: Scope,
  { query, ...options }: ListOptions & SessionFilter,
  shown: (session: SessionInfo) => SessionInfo,
): Promise<Page<SessionInfo>> {
  checkQuery(query);
  if (!query) {
    const page = await sessions.listSessions(scope, options);
    return { ...page, items: page.items.map(shown) };
  }
  const { limit = 50, cursor, ...filter } = options;
  checkLimit(limit);
  const read = (at: string | undefined, most: number): Promise<Page<SessionInfo>> =>
    sessions.listSessions(scope, {
      ...filter,
      limit: most,
      ...(at !== undefined && { cursor: at }),
    });
  const items: SessionInfo[] = [];
  for (let at = cursor; ; ) {
    const page = await read(at, batchSize);
    for (const [place, each] of page.items.entries()) {
      const session = shown(each);
      const { sessionId: id, title, metadata } = session;
      if (!matchesQuery(query, { id, title, metadata, text: () => '' })) continue;
      items.push(session);
      if (items.length < limit) continue;
      // Only a store can say where its list continues within a batch.
      const isLast = place + 1 === page.items.length;
      const { next } = isLast ? page : await read(at, place + 1);
      return { items, ...(next !== undefined && { next }) };
    }
    if (page.next === undefined) return { items };
    at = page.next;
  }
}
