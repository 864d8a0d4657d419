import { isStateHash, type SessionState } from '../../session/session-state.ts';
import type { Lookup, RunSupport, Scope, Store } from '../contract/store.ts';
import { saveSnapshot } from '../memory/commit.ts';
import { effectSupport } from '../memory/effects.ts';
import { eventSupport } from '../memory/events.ts';
import { maintenanceSupport } from '../memory/maintenance.ts';
import { memorySupport } from '../memory/memories.ts';
import { readSnapshot } from '../memory/reading.ts';
import { familyFinder } from '../memory/rows.ts';
import { abortSupport, runSupport } from '../memory/runs.ts';
import { spendSupport } from '../memory/spend.ts';
import { findSession, findSnapshot, type Tables } from '../memory/tables.ts';
import { timelineSupport } from '../memory/timeline.ts';
import { isExpired } from '../rules/holder.ts';
import type { Directory } from './directory.ts';
import { attempt, dataLoss } from './disk.ts';
import { scopeFolder } from './layout.ts';
import { homeOf } from './session-tree.ts';
import type { Transaction } from './transaction.ts';
import type { Watch } from './watch.ts';

/** How a call of the memory store becomes one of the file store. */
interface Around<Args extends readonly unknown[]> {
  /** A listener needs no files, but a watch over them. @default 'write' */
  readonly kind?: 'read' | 'write' | 'listen';
  /** The scopes whose sessions are all read before the call. */
  readonly scopes?: (...args: Args) => readonly string[];
  /** Prepares the tables for the call, in the same transaction. */
  readonly before?: (...args: Args) => void;
}

type Arounds<Support> = {
  readonly [Name in keyof Support]?: NonNullable<Support[Name]> extends (
    ...args: infer Args
  ) => unknown
    ? Around<Args>
    : never;
};

const read = { kind: 'read' } as const;
const listen = { kind: 'listen' } as const;

/** The calls of the memory store on the tables of a directory. Each is a transaction, which reads the rows that it needs. */
export function memoryCalls(directory: Directory, transaction: Transaction, watch: Watch) {
  const { tables, files } = directory;
  const around = <Support extends object>(support: Support, how: Arounds<Support>): Support => {
    const arounds = how as Readonly<Record<string, Around<readonly unknown[]> | undefined>>;
    const calls = Object.entries(support).map(([name, call]) => {
      const { kind = 'write', scopes, before } = arounds[name] ?? {};
      const listener = (...args: readonly unknown[]): unknown => {
        watch.start();
        return call(...args);
      };
      const inTransaction = async (...args: readonly unknown[]): Promise<unknown> => {
        if (scopes !== undefined) {
          await transaction.open();
          await readAhead(directory, transaction, scopes(...args));
        }
        return transaction[kind === 'read' ? 'read' : 'write'](() => {
          for (const folder of scopes?.(...args) ?? []) directory.refreshScope(folder);
          before?.(...args);
          return call(...args);
        });
      };
      return [name, kind === 'listen' ? listener : inTransaction];
    });
    return Object.fromEntries(calls) as Support;
  };

  const check = (scope: Scope, lookup: Lookup): void => checkStored(directory, scope, lookup);
  const everyScope = (): readonly string[] => directory.scopeFolders();
  const runs = around(runSupport(tables), {
    load: { ...read, before: check },
    getRequest: read,
    getStep: read,
    readInbox: read,
    readLeftInbox: read,
    getRun: read,
    takeOver: {
      before: () => {
        directory.refreshRuns();
        setDamagedAside(tables);
      },
    },
    listRuns: { ...read, before: () => directory.refreshRuns() },
    listDeadRuns: {
      ...read,
      scopes: (scope) => (scope === undefined ? everyScope() : [scopeFolder(scope)]),
    },
  });
  const support: Pick<Store, 'getSnapshot' | 'saveSnapshot'> = {
    getSnapshot: async (...request) => readSnapshot(tables, ...request),
    async saveSnapshot(scope, snapshotId, mutate) {
      return saveSnapshot(tables, scope, snapshotId, (current) => {
        const next = mutate(current);
        // An id is used once in a store, across owners.
        if (next !== undefined && current === undefined) {
          for (const folder of everyScope()) directory.refreshScope(folder);
        }
        return next;
      });
    },
  };
  return {
    ...around(support, { getSnapshot: { ...read, before: check } }),
    runs: {
      ...runs,
      async attachPartial(run, write) {
        await runs.attachPartial(run, write);
        await transaction.write(() => files.endUploads(run.runId));
      },
    } satisfies RunSupport,
    abort: around(abortSupport(tables), { onChange: listen }),
    events: around(eventSupport(tables), { read, onEvents: listen }),
    timeline: around(timelineSupport(tables), {
      getSession: {
        ...read,
        before: (scope, sessionId, options) => {
          if (options?.state === true) check(scope, { sessionId });
        },
      },
      listSessions: { ...read, scopes: (scope) => [scopeFolder(scope)] },
      listOwners: { ...read, scopes: everyScope },
      listSnapshots: read,
      deleteSession: {
        // The sessions of its sub-agents belong to other agents, but to the same owner.
        scopes: ({ owner = null }) => directory.scopeFolders(owner),
        before: (scope, sessionId) => {
          const session = findSession(tables, scope, sessionId);
          const family = session === undefined ? [] : familyFinder(tables)(session);
          for (const each of family) directory.session(each.scope, each.id);
        },
      },
    }),
    memory: around(memorySupport(tables), {
      read,
      session: read,
      note: read,
      heads: read,
      exportSession: read,
    }),
    spend: around(spendSupport(tables), { total: read, sums: read }),
    // Forks, which share effects, are in the tree of their source.
    effects: around(effectSupport(tables), { list: read }),
    // All sessions are read, so that no id of a snapshot is used twice.
    maintenance: around(maintenanceSupport(tables), { importSession: { scopes: everyScope } }),
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

/** Refuses a stored state that does not fit its hash. Each state is verified once, because states in memory never change. */
function checkStored({ tables }: Directory, scope: Scope, lookup: Lookup): void {
  const row =
    'snapshotId' in lookup
      ? findSnapshot(tables, scope, lookup.snapshotId)
      : findSession(tables, scope, lookup.sessionId)?.head;
  if (row === undefined || isStateHash(row.state, row.stateHash)) return;
  const name = homeOf(row.session)?.journal.name ?? '';
  throw dataLoss(name, `the state of snapshot "${row.id}" does not fit its hash`);
}

/** Number of trees that are read under one hold of the lock. */
const batch = 32;

/** Reads the trees of scopes that are not in memory, a few at a time, so that others can use the lock and the process. */
export async function readAhead(
  directory: Directory,
  transaction: Transaction,
  scopes: readonly string[],
): Promise<void> {
  const unread = scopes
    .flatMap((scope) => directory.foldersIn(scope))
    .filter((folder) => !directory.trees.has(folder));
  for (let at = 0; at < unread.length; at += batch) {
    await transaction.read(() => {
      for (const folder of unread.slice(at, at + batch)) {
        attempt(() => directory.refreshTree(folder, { isLoaded: false }));
      }
    });
  }
}
