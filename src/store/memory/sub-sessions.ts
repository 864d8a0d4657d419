import { type SessionRow, sessionKey, type Tables } from './tables.ts';

/** A session and, however deep, the sessions of the sub-agents that were started in it. */
export function withSubSessions(tables: Tables, session: SessionRow): readonly SessionRow[] {
  return familyFinder(tables)(session);
}

/** Finds the families of many sessions after one pass over all of them. It does not know sessions that are added later. */
export function familyFinder(tables: Tables): (session: SessionRow) => readonly SessionRow[] {
  const started = new Map<string, SessionRow[]>();
  for (const session of tables.sessions.values()) {
    const { startedBy, scope } = session;
    if (startedBy === undefined) continue;
    const key = sessionKey({ ...scope, agent: startedBy.agent }, startedBy.sessionId);
    const siblings = started.get(key);
    if (siblings === undefined) started.set(key, [session]);
    else siblings.push(session);
  }
  return (session) => {
    const found = new Set([session]);
    for (const { scope, id } of found) {
      for (const each of started.get(sessionKey(scope, id)) ?? []) found.add(each);
    }
    return [...found];
  };
}
