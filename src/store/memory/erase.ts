import { dropSessionRows } from './rows.ts';
import type { SessionRow, Tables } from './tables.ts';

/** How many sessions are removed in one step. */
const batch = 64;

/** Removes the sessions of an owner, and what it spent. Turns may run between two steps; each step yields how many sessions it removed. */
export function* eraseInSteps(tables: Tables, owner: string): Generator<number, number> {
  let erased = 0;
  // Sessions that were made between two steps go as well.
  for (let some = someOf(tables, owner); some.size > 0; some = someOf(tables, owner)) {
    dropSessionRows(tables, some);
    erased += some.size;
    yield some.size;
  }
  tables.spend.eraseOwner(owner);
  return erased;
}

function someOf(tables: Tables, owner: string): Set<SessionRow> {
  const found = new Set<SessionRow>();
  for (const session of tables.sessions.values()) {
    if (session.scope.owner === owner) found.add(session);
    if (found.size === batch) break;
  }
  return found;
}
