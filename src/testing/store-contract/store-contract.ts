import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { abortContract } from './abort.ts';
import { durabilityContract } from './durability.ts';
import { effectContract } from './effects.ts';
import { eventContract } from './events.ts';
import { fileContract } from './files.ts';
import { createKit, type Kit, type OpenedStore, type UseKit } from './kit.ts';
import { longArtifactContract } from './long-artifacts.ts';
import { maintenanceContract } from './maintenance.ts';
import { memoryContract } from './memory.ts';
import { messagePageContract } from './message-pages.ts';
import { randomContract } from './random.ts';
import { runContract } from './runs.ts';
import { snapshotContract } from './snapshots.ts';
import { spendContract } from './spend.ts';
import { timelineContract } from './timeline.ts';
import { treeContract } from './trees.ts';

/** Optional capabilities of a store. */
type Capability =
  | 'runs'
  | 'abort'
  | 'events'
  | 'timeline'
  | 'maintenance'
  | 'spend'
  | 'files'
  | 'memory'
  | 'effects';

const all: readonly Capability[] = [
  'runs',
  'abort',
  'events',
  'timeline',
  'maintenance',
  'spend',
  'files',
  'memory',
  'effects',
];

/** What stands beside the sessions, and what a store may leave out. */
const beside: readonly Capability[] = ['spend', 'files', 'memory', 'effects'];

/** Options of {@link storeContract}. */
interface StoreContractOptions {
  /** The capabilities of the store; the suite fails if the store has others. @default all */
  readonly capabilities?: readonly Capability[];
  /** Whether data survives reopening the store. @default true */
  readonly durable?: boolean;
  /** Number of random histories. @default 50 */
  readonly runs?: number;
}

/**
 * Declares the conformance tests for stores. `open` returns an empty store for each test. The suite name lists the tested
 * capabilities.
 *
 * @example
 * storeContract('my store', async () => {
 *   const store = await openMyStore();
 *   return { store, close: async () => await store.close?.() };
 * });
 */
export function storeContract(
  name: string,
  open: () => Promise<OpenedStore>,
  { capabilities = all, durable = true, runs = 50 }: StoreContractOptions = {},
): void {
  const isWhole = all.every((part) => beside.includes(part) || capabilities.includes(part));
  const tested = [
    'snapshots',
    ...capabilities,
    ...(isWhole && durable ? ['durability'] : []),
    ...(isWhole ? ['random histories'] : []),
  ];
  describe(`${name} store: ${tested.join(', ')}`, () => {
    let opened: OpenedStore;
    let kit: Kit;
    beforeEach(async () => {
      opened = await open();
      await opened.store.open?.();
      kit = createKit(opened);
    });
    afterEach(() => opened.close());
    const useKit: UseKit = () => kit;

    test('has the capabilities that are tested here, and no others', () => {
      expect(all.filter((part) => opened.store[part] !== undefined)).toEqual(
        all.filter((part) => capabilities.includes(part)),
      );
    });
    snapshotContract(useKit);
    for (const part of capabilities) groups[part](useKit);
    if (isWhole && durable) durabilityContract(useKit);
    if (isWhole) longArtifactContract(useKit);
    if (isWhole) messagePageContract(useKit);
    if (isWhole) randomContract(useKit, runs);
  });
}

const groups: Record<Capability, (useKit: UseKit) => void> = {
  runs: runContract,
  abort: abortContract,
  events: eventContract,
  timeline: timelineContract,
  maintenance: maintenanceContract,
  spend: spendContract,
  files(useKit) {
    fileContract(useKit);
    treeContract(useKit);
  },
  memory: memoryContract,
  effects: effectContract,
};
