import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type Clock, systemClock } from '../../src/core/time.ts';
import type { Scope, Store } from '../../src/store/contract/store.ts';
import { type FileStoreOptions, fileStore } from '../../src/store/file/index.ts';
import { createKit, type Kit, type OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { readTree } from '../support/read-tree.ts';

/** An empty directory, and the way to remove it. */
export async function temporaryDirectory(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'waymark-file-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** What the tests of a file work with: a directory for each of them, and stores on it that are closed behind it. */
export interface FileStores {
  /** The directory of the test that is running. */
  readonly directory: string;
  /** A store on that directory as another process would open it, with short words for turns. */
  open(options?: FileStoreOptions, scope?: Scope): Kit;
}

/** Gives every test of the calling file such a place. */
export function setUpFileStores(): FileStores {
  let place = { path: '', remove: async (): Promise<void> => {} };
  let stores: Store[] = [];
  beforeEach(async () => {
    place = await temporaryDirectory();
    stores = [];
  });
  afterEach(async () => {
    for (const store of stores) await store.close?.();
    await place.remove();
  });
  return {
    get directory() {
      return place.path;
    },
    open(options, scope = { agent: 'chat' }) {
      const store = fileStore(place.path, options);
      stores.push(store);
      return createKit({ store, close: async () => {} }, scope);
    },
  };
}

/** A store for one test of the contract, made of whatever `open` opens on a directory. */
export async function openForContract(
  open: (directory: string, clock: Clock) => Store,
): Promise<OpenedStore> {
  const { path, remove } = await temporaryDirectory();
  let past = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + past };
  let store = open(path, clock);
  return {
    store,
    async reopen() {
      await store.close?.();
      store = open(path, clock);
      return store;
    },
    advance(ms) {
      past += ms;
    },
    dump: async () => [...(await readTree(path)).values()].join('\n'),
    async close() {
      await store.close?.();
      await remove();
    },
  };
}

/** Two stores on one directory that take turns, call by call: whatever one does, the other must see. */
export function takingTurns(directory: string, clock: Clock): Store {
  const stores = [fileStore(directory, { clock }), fileStore(directory, { clock })] as const;
  let turn = 0;
  const next = (): Store => stores[turn++ % 2 === 0 ? 0 : 1];
  return {
    ...alternate(next, stores[0]),
    runs: alternate(() => part(next().runs), part(stores[0].runs)),
    abort: alternate(() => part(next().abort), part(stores[0].abort)),
    events: alternate(() => part(next().events), part(stores[0].events)),
    timeline: alternate(() => part(next().timeline), part(stores[0].timeline)),
    maintenance: alternate(() => part(next().maintenance), part(stores[0].maintenance)),
    async close() {
      for (const store of stores) await store.close?.();
    },
  };
}

function alternate<Part extends object>(next: () => Part, model: Part): Part {
  return new Proxy(model, {
    get: (target, key) => {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown => {
        const store = next();
        return (Reflect.get(store, key) as (...args: unknown[]) => unknown).apply(store, args);
      };
    },
  });
}

function part<Part>(value: Part | undefined): Part {
  if (value === undefined) throw new Error('the file store has every capability');
  return value;
}
