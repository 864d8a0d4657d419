import type { SessionRow, Tables } from './tables.ts';

/** A session and, however deep, the sessions of the sub-agents that were started in it. */
export function withSubSessions(tables: Tables, session: SessionRow): readonly SessionRow[] {
  const found = new Set([session]);
  for (const parent of found) {
    for (const other of tables.sessions.values()) if (isStartedBy(other, parent)) found.add(other);
  }
  return [...found];
}

function isStartedBy({ startedBy, scope }: SessionRow, parent: SessionRow): boolean {
  return (
    startedBy !== undefined &&
    startedBy.sessionId === parent.id &&
    startedBy.agent === parent.scope.agent &&
    scope.owner === parent.scope.owner
  );
}
