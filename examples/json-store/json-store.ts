import { systemClock } from 'waymark';
import { type Clock, checkedStore, type Store } from 'waymark/store';
import { abortSupport } from './abort.ts';
import { eventSupport } from './events.ts';
import { JsonFile } from './json-file.ts';
import { maintenanceSupport } from './maintenance.ts';
import { readSnapshot } from './read.ts';
import { runSupport } from './runs.ts';
import { saveSnapshot } from './save.ts';
import { timelineSupport } from './timeline.ts';

export interface JsonStoreOptions {
  /** @default the clock of the machine */
  readonly clock?: Clock;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
}

// #region store
/**
 * A store in one JSON file, for one process, written only against `waymark/store`. It shows what a store consists of. Each write
 * rewrites the file, so it is for small amounts of data.
 *
 * @example
 * const app = waymark({ store: jsonStore('store.json'), model });
 */
export function jsonStore(path: string, options: JsonStoreOptions = {}): Store {
  const { clock = systemClock, eventsTtl = 60_000 } = options;
  const file = new JsonFile(path, clock);
  return checkedStore({
    name: 'json',
    getSnapshot: (scope, lookup) => file.read((tx) => readSnapshot(tx, scope, lookup)),
    saveSnapshot: (scope, snapshotId, mutate) =>
      file.write((tx) => saveSnapshot(tx, scope, snapshotId, mutate)),
    runs: runSupport(file),
    abort: abortSupport(file),
    events: eventSupport(file, eventsTtl),
    timeline: timelineSupport(file),
    maintenance: maintenanceSupport(file),
  });
}
// #endregion
