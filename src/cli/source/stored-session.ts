import type { SessionInfo } from '../../protocol/session.ts';
import type { Scope } from '../../store/contract/store.ts';
import { allPages } from './all-pages.ts';
import { lookUpSession, noSession, type SessionReader } from './find-session.ts';
import { agentsOf, type OpenStore } from './open-store.ts';

/** The options that say in which scopes of a store to look. */
export interface ScopeFilter {
  readonly agent?: string;
  readonly owner?: string;
}

/** A session of a store and its scope. */
export interface StoredSession {
  readonly scope: Scope;
  readonly session: SessionInfo;
}

/** The scopes that the options leave: one for each agent. */
export function scopesOf(options: ScopeFilter, open: Pick<OpenStore, 'agents'>): Scope[] {
  const { owner } = options;
  return agentsOf(options, open).map((agent) => ({ agent, ...(owner !== undefined && { owner }) }));
}

/** The session with this id, or the only one whose id starts with it, in a store. */
export async function findStoredSession(
  open: OpenStore,
  options: ScopeFilter,
  given: string,
): Promise<StoredSession> {
  const { timeline } = open;
  const readers = scopesOf(options, open).map(
    (scope): SessionReader<Scope> => ({
      place: scope,
      name: scope.agent,
      get: (id) => timeline.getSession(scope, id),
      list: (query, cursor) =>
        timeline.listSessions(scope, {
          query,
          limit: 200,
          ...(cursor !== undefined && { cursor }),
        }),
    }),
  );
  const found = await lookUpSession(readers, given);
  if (found !== undefined) return { scope: found.place, session: found.session };
  throw noSession(
    given,
    options.owner === undefined
      ? 'Only sessions without an owner were searched. To search those of an owner, use --owner.'
      : `Only sessions of owner "${options.owner}" were searched.`,
  );
}

/** All sessions of a scope, newest first. */
export function sessionsIn(
  { timeline }: Pick<OpenStore, 'timeline'>,
  scope: Scope,
): Promise<SessionInfo[]> {
  return allPages((cursor) =>
    timeline.listSessions(scope, { limit: 200, ...(cursor !== undefined && { cursor }) }),
  );
}
