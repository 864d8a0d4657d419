import { join, resolve } from 'node:path';
import { systemClock } from '../../core/clock.ts';
import { createIds } from '../../core/id.ts';
import { checkedStore } from '../../session/checked-store.ts';
import { createHub } from '../../session/memory-store/hub.ts';
import type { Tables } from '../../session/memory-store/tables.ts';
import type { Store } from '../../session/store.ts';
import { Disk } from './disk.ts';
import { abortSupport, eventSupport } from './events.ts';
import { createGate, type Gate } from './gate.ts';
import { lockFile } from './layout.ts';
import { createLock, type Lock } from './lock.ts';
import { maintenanceSupport } from './maintenance.ts';
import { Mirror } from './mirror.ts';
import type { FileStoreOptions } from './options.ts';
import { runSupport } from './runs.ts';
import { snapshotSupport } from './snapshots.ts';
import { timelineSupport } from './timeline.ts';
import { createWatch } from './watch.ts';

/**
 * A store of plain files in a directory, for people to read and to put under version control. Several processes may use one
 * directory. It does its work on the tables of a memory store: what these must say of a session is read from its files
 * before, and what a call has changed is written to them after, under one lock.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): Store {
  const { mirror, gate, lock } = openParts(directory, options);
  const watch = createWatch(mirror, gate);
  return checkedStore({
    name: 'file',
    open: gate.open,
    ...snapshotSupport(mirror, gate),
    runs: runSupport(mirror, gate),
    abort: abortSupport(mirror, gate, watch),
    events: eventSupport(mirror, gate, watch),
    timeline: timelineSupport(mirror, gate),
    maintenance: maintenanceSupport(mirror, gate),
    async close() {
      watch.close();
      lock.close();
    },
  });
}

/** What the parts of a store over a directory share. */
export function openParts(
  directory: string,
  options: FileStoreOptions = {},
): { readonly mirror: Mirror; readonly gate: Gate; readonly lock: Lock } {
  const { clock = systemClock, newId = createIds(clock), eventsTtl = 60_000 } = options;
  const { durable = true, lockTimeout = 10_000 } = options;
  const disk = new Disk(resolve(directory), { durable });
  const tables: Tables = {
    clock,
    newId,
    newRow: (row) => row,
    eventsTtl,
    hub: createHub(),
    sessions: new Map(),
    snapshots: new Map(),
    runs: new Map(),
    events: new Map(),
    endedAt: new Map(),
    dead: new Map(),
    requests: new Map(),
  };
  const mirror = new Mirror(disk, tables);
  const lock = createLock(join(disk.root, lockFile), { timeout: lockTimeout });
  const gate = createGate(mirror, lock);
  return { mirror, gate, lock };
}
