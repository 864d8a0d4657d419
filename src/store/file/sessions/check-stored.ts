import { isStateHash } from '../../../session/session-state.ts';
import type { Lookup, Scope } from '../../contract/store.ts';
import { findSession, findSnapshot } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { homes } from './session-tree.ts';

/** Refuses a stored state that does not fit its hash. What was verified once stays so: states in memory never change. */
export function checkStored({ tables }: DirectoryCache, scope: Scope, lookup: Lookup): void {
  const row =
    'snapshotId' in lookup
      ? findSnapshot(tables, scope, lookup.snapshotId)
      : findSession(tables, scope, lookup.sessionId)?.head;
  if (row === undefined || isStateHash(row.state, row.stateHash)) return;
  const name = homes.get(row.session)?.journal.name ?? '';
  throw dataLoss(name, `the state of snapshot "${row.id}" does not fit its hash`);
}
