import { describe, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { toJson } from '../../src/core/json/json.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Artifact } from '../../src/protocol/state.ts';
import type { Store } from '../../src/store/contract/store.ts';
import {
  type Change,
  createTurns,
  customTurn,
  plainTurn,
  type Turns,
  toolTurn,
  windowTurn,
} from './store-workload.ts';

/** A store that tells what it does and what it holds. */
export interface MeasuredStore {
  readonly store: Store;
  /** The statements run since the last call. */
  readonly queries: () => readonly string[];
  /** Rows by table. */
  readonly rows: () => Promise<Readonly<Record<string, number>>>;
  /** Bytes on disk. */
  readonly size: () => Promise<number>;
  readonly close: () => Promise<void>;
}

/** What a store may cost. */
export interface Limits {
  /** Statements of a plain turn. */
  readonly queriesPerTurn: number;
  /** Bytes of 200 turns with a tool call each. */
  readonly toolTurns: number;
  /** Bytes a turn may take beyond the JSON of its messages. */
  readonly overhead: number;
}

const newId = createIds(systemClock);

/** Costs in statements, rows and bytes, which do not depend on how busy the machine is. */
export function storeCosts(
  name: string,
  open: () => Promise<MeasuredStore>,
  { queriesPerTurn, toolTurns, overhead }: Limits,
): void {
  const measured = async (work: (opened: MeasuredStore) => Promise<void>): Promise<void> => {
    const opened = await open();
    try {
      await opened.store.open?.();
      await work(opened);
    } finally {
      await opened.close();
    }
  };
  /** What pieces of work cost, early and late in one session. */
  const earlyAndLate = async (
    opened: MeasuredStore,
    { change, late }: { readonly change: Change; readonly late: number },
    works: Readonly<Record<string, (turns: Turns) => Promise<unknown>>>,
  ): Promise<Readonly<Record<string, readonly [Cost, Cost]>>> => {
    const turns = createTurns(opened.store);
    const costs: Record<string, Cost[]> = {};
    for (const length of [10, late]) {
      await turns.take(length - turns.times.length, change);
      for (const [name, work] of Object.entries(works)) {
        costs[name] = [...(costs[name] ?? []), await costOf(opened, () => work(turns))];
      }
    }
    return costs as Record<string, [Cost, Cost]>;
  };
  /** Bytes a turn takes beyond its JSON, between each two of these lengths of one session. */
  const growth = async (change: Change, ...lengths: readonly number[]): Promise<number[]> => {
    const found: number[] = [];
    await measured(async ({ store, size }) => {
      const turns = createTurns(store);
      let before: { readonly at: number; readonly bytes: number } | undefined;
      for (const at of lengths) {
        await turns.take(at - turns.times.length, change);
        const bytes = (await size()) - turns.written();
        if (before !== undefined) found.push((bytes - before.bytes) / (at - before.at));
        before = { at, bytes };
      }
    });
    return found;
  };

  describe(`what ${name} costs`, () => {
    test('turns, loading, pages, forks: the same statements and rows, however long the session', async () => {
      await measured(async (opened) => {
        const { timeline, runs } = opened.store;
        const options = { change: plainTurn, late: 1000 };
        const costs = await earlyAndLate(opened, options, {
          turn: (turns) => turns.take(1, plainTurn),
          load: async ({ scope, sessionId }) => runs?.load(scope, { sessionId }),
          page: async ({ scope, sessionId }) =>
            timeline?.listSnapshots(scope, sessionId, { limit: 20, includeOrphaned: true }),
          async fork({ scope, base }) {
            const id = base()?.snapshotId ?? '';
            await timeline?.fork(scope, id, { sessionId: newId(), snapshotId: newId() });
            await timeline?.restore(scope, id);
          },
        });
        for (const [early, late] of Object.values(costs)) expect(late).toEqual(early);
        expect(costs.turn?.[0].queries.length).toBeLessThanOrEqual(queriesPerTurn);
        expect(costs.turn?.[0].rows).toEqual({ messages: 2, snapshots: 1 });
        expect(costs.load?.[0].queries.length).toBeLessThanOrEqual(3);
        expect(costs.page?.[0].queries).toHaveLength(1);
        expect(costs.fork?.[0].rows).toEqual({ branches: 1, sessions: 1, snapshots: 1 });
      });
    });

    test('a turn in a session that keeps a window of its history: the same', async () => {
      await measured(async (opened) => {
        const change = windowTurn(10);
        const { turn } = await earlyAndLate(
          opened,
          { change, late: 200 },
          {
            turn: (turns) => turns.take(1, change),
          },
        );
        expect(turn?.[1]).toEqual(turn?.[0]);
        expect(turn?.[1].rows).toEqual({ messages: 2, snapshots: 1, views: 1 });
      });
    });

    test.each([
      ['three queries, marks, documents and large artifacts included', 3000, 3],
      ['four queries with long artifacts', 100_000, 4],
    ])('loading: at most %s', async (_, size, most) => {
      await measured(async ({ store, queries }) => {
        const turns = createTurns(store);
        const big: Change = (state, turn) => {
          const custom = customTurn(5000)(state, turn);
          return { ...custom, state: { ...custom.state, artifacts: [artifact('a', turn, size)] } };
        };
        await turns.take(20, big);
        const lookup = { sessionId: turns.sessionId };
        queries();
        await store.runs?.load(turns.scope, lookup);
        expect(queries().length).toBeLessThanOrEqual(most);
        const read = await store.getSnapshot(turns.scope, lookup);
        expect(queries().length).toBeLessThanOrEqual(most);
        expect(read?.state?.messages?.at(-1)?.metadata?.snapshotId).toBe(read?.snapshotId);
      });
    });

    test('loading and listing over many nested branches: the same queries', async () => {
      await measured(async ({ store, queries }) => {
        const depth = process.env.LONG === '1' ? 200 : 100;
        const { scope, sessionId } = await nestedBranches(store, depth);
        queries();
        const loaded = await store.runs?.load(scope, { sessionId });
        expect(queries()).toHaveLength(2);
        expect(loaded?.state.history.length).toBe(2 * depth + 2);
        const page = await store.timeline?.listSnapshots(scope, sessionId, { limit: 20 });
        expect(queries()).toHaveLength(1);
        expect(page?.items.map((each) => each.turnIndex)).toEqual(
          Array.from({ length: 20 }, (_, n) => n),
        );
      });
    });

    test('a failed turn does not make the next ones dearer', async () => {
      await measured(async (opened) => {
        const { store, rows } = opened;
        const turns = createTurns(store);
        await turns.take(3, plainTurn);
        await turns.fail(plainTurn);
        const before = await rows();
        await turns.take(3, plainTurn);
        expect((await rows()).branches).toBe(before.branches);
      });
    });

    test('200 turns with a tool call each', async () => {
      await measured(async ({ store, size }) => {
        await createTurns(store).take(200, toolTurn);
        expect(await size()).toBeLessThan(toolTurns);
      });
    });

    test('growth is the new JSON and little more, and the same late as early', async () => {
      const [early, , late] = await growth(toolTurn, 200, 400, 900, 1100);
      expect(early).toBeLessThanOrEqual(overhead);
      expect(late).toBeLessThanOrEqual(overhead);
      const [plain] = await growth(plainTurn, 200, 600);
      expect(plain).toBeLessThanOrEqual(overhead);
    }, 180_000);

    test('a window that slides over the history costs what is new, however wide it is', async () => {
      for (const size of [20, 200]) {
        const [found] = await growth(windowTurn(size), 150, 450);
        expect(found).toBeLessThanOrEqual(overhead);
      }
    });

    test('a hundred bytes changed in a document of 40 KB cost their patch', async () => {
      const [plain = 0] = await growth(plainTurn, 200, 600);
      const [changed = 0] = await growth(customTurn(40_000), 200, 600);
      expect(changed - plain).toBeLessThanOrEqual(1000);
    });

    test('a large part of an artifact is stored once', async () => {
      const artifacts = Array.from({ length: 10 }, (_, n) => artifact(`a${n}`, n, 100_000));
      const change: Change = (state, turn) => {
        const { state: next } = plainTurn(state, turn);
        const changed = artifact('small', turn, 100);
        return { state: { ...next, artifacts: frozen([...artifacts, changed]) } };
      };
      const [found] = await growth(change, 5, 65);
      // Each long text is named by its lists of chunks.
      expect(found).toBeLessThanOrEqual(overhead + 4500);
    });
  });
}

interface Cost {
  readonly queries: readonly string[];
  /** Rows that came or went, by table. */
  readonly rows: Readonly<Record<string, number>>;
}

async function costOf(opened: MeasuredStore, work: () => Promise<unknown>): Promise<Cost> {
  const before = await opened.rows();
  opened.queries();
  await work();
  const queries = opened.queries();
  const after = await opened.rows();
  const rows = Object.keys(after).map((table) => {
    return [table, (after[table] ?? 0) - (before[table] ?? 0)] as const;
  });
  return { queries, rows: Object.fromEntries(rows.filter(([, count]) => count !== 0)) };
}

function artifact(name: string, seed: number, length: number): Artifact {
  const text = `${name} ${seed} `.repeat(Math.ceil(length / 4)).slice(0, length);
  return { name, parts: [{ text }] };
}

function frozen(artifacts: readonly Artifact[]): readonly Artifact[] {
  return toJson(artifacts, 'artifacts') as unknown as readonly Artifact[];
}

/** A session whose head has this many branches below it, two messages each. */
async function nestedBranches(store: Store, depth: number): Promise<Turns> {
  const turns = createTurns(store);
  await turns.take(1, plainTurn);
  for (let n = 0; n < depth; n++) {
    const before = turns.base()?.snapshotId ?? '';
    // A turn that is gone back on: the next one begins a branch.
    await turns.take(1, plainTurn);
    await store.timeline?.restore(turns.scope, before);
    await turns.takeAlone(plainTurn);
  }
  return turns;
}
