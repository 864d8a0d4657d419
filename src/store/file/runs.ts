import { isStateHash, type SessionState } from '../../session/session-state.ts';
import type { AbortSupport, EventSupport, RunSupport } from '../contract/store.ts';
import { eventSupport as memoryEvents } from '../memory/events.ts';
import { abortSupport as memoryAbort, runSupport as memoryRuns } from '../memory/runs.ts';
import type { Tables } from '../memory/tables.ts';
import { isExpired } from '../rules/holder.ts';
import type { Directory } from './directory.ts';
import { scopeFolder } from './layout.ts';
import { among, checkStored } from './timeline.ts';
import { inTransactions, type Transaction } from './transaction.ts';
import type { Watch } from './watch.ts';

/** Claims, and the writes under them. */
export function runSupport(directory: Directory, transaction: Transaction): RunSupport {
  const { tables, files } = directory;
  const memory = memoryRuns(tables);
  return {
    ...inTransactions(memory, transaction, [
      'getRequest',
      'getStep',
      'readInbox',
      'readLeftInbox',
      'getRun',
    ]),
    load: (scope, lookup) =>
      transaction.read(() => {
        checkStored(directory, scope, lookup);
        return memory.load(scope, lookup);
      }),
    async attachPartial(run, write) {
      await transaction.write(() => memory.attachPartial(run, write));
      await transaction.write(() => files.endUploads(run.runId));
    },
    takeOver: (request) =>
      transaction.write(() => {
        directory.refreshRuns();
        setDamagedAside(tables);
        return memory.takeOver(request);
      }),
    listRuns: (scope) =>
      transaction.read(() => {
        directory.refreshRuns();
        return memory.listRuns(scope);
      }),
    listDeadRuns: (scope) =>
      among(
        directory,
        transaction,
        () => (scope === undefined ? directory.scopeFolders() : [scopeFolder(scope)]),
        () => memory.listDeadRuns(scope),
      ),
  };
}

/** Skips runs with a damaged state, so that the others can be taken over. */
function setDamagedAside({ runs, clock }: Tables): void {
  const now = clock.now();
  for (const run of [...runs.values()].filter((each) => isExpired(each, now))) {
    if (!isWhole(run.base) || !isWhole(run.checkpoint)) runs.delete(run.id);
  }
}

function isWhole(holder: { state: SessionState; stateHash: string } | undefined): boolean {
  try {
    return holder === undefined || isStateHash(holder.state, holder.stateHash);
  } catch {
    return false;
  }
}

/** Aborts of runs, in any process. */
export function abortSupport(
  { tables }: Directory,
  transaction: Transaction,
  watch: Watch,
): AbortSupport {
  const memory = memoryAbort(tables);
  return {
    ...inTransactions(memory, transaction, []),
    onChange(snapshotId, listener) {
      watch.start();
      return memory.onChange(snapshotId, listener);
    },
  };
}

/** Events of runs, kept for a while after their end. */
export function eventSupport(
  { tables }: Directory,
  transaction: Transaction,
  watch: Watch,
): EventSupport {
  const memory = memoryEvents(tables);
  return {
    ...inTransactions(memory, transaction, ['read']),
    onEvents(runId, listener) {
      watch.start();
      return memory.onEvents(runId, listener);
    },
  };
}
