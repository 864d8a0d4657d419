import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json/json.ts';
import { History } from '../../src/session/history.ts';
import { emptyState, hashState, type SessionState } from '../../src/session/session-state.ts';
import type { StateBase } from '../../src/store/contract/store.ts';
import { type Kit, refused, say } from '../../src/testing/store-contract/kit.ts';
import { tickingClock } from '../support/movable-clock.ts';
import { countFileWork, type FileWork } from './file-intercept.ts';
import { setUpFileStores } from './file-support.ts';

const files = setUpFileStores();
const open = (): Kit => files.open({ durability: 'normal', clock: tickingClock });

const sizeOf = async (session: string): Promise<number> =>
  (await stat(join(files.directory, `sessions/_/chat/${session}/journal.jsonl`))).size;

/** A turn as an agent takes it that has the session at hand: nothing is loaded. */
async function turn(
  { claim, commit }: Kit,
  sessionId: string,
  base: StateBase | undefined,
  change: (state: SessionState) => SessionState,
): Promise<StateBase> {
  const held = await claim(sessionId);
  const state = change(base?.state ?? emptyState);
  const committed = await commit(held, {
    ...(base === undefined ? {} : { base, parentId: base.snapshotId }),
    state,
    stateHash: hashState(state),
  });
  return committed.base;
}

const exchange = (state: SessionState, no: number): SessionState => ({
  ...state,
  history: state.history.append([
    say('user', `question ${String(no).padStart(6, '0')}`),
    say('model', 'x'.repeat(1000)),
  ]),
});

describe('what a turn costs', () => {
  test('is the same after 10 turns and after 1,000: calls, bytes read and written, bytes kept', async () => {
    const kit = open();
    let base: StateBase | undefined;
    const costs = new Map<number, FileWork & { growth: number }>();
    for (let no = 0; no <= 1000; no++) {
      const before = no === 0 ? 0 : await sizeOf('s');
      const work = await countFileWork(async () => {
        base = await turn(kit, 's', base, (state) => exchange(state, no));
      });
      costs.set(no, { ...work, growth: (await sizeOf('s')) - before });
    }
    const early = costs.get(10);
    const late = costs.get(1000);
    expect(late?.calls).toBe(early?.calls);
    // The end of the last line shows that a file is as this process left it.
    expect(late?.bytesRead).toBe(early?.bytesRead);
    expect(late?.bytesRead).toBeLessThan(200);
    expect(Math.abs((late?.bytesWritten ?? 0) - (early?.bytesWritten ?? 0))).toBeLessThan(20);
    expect(early?.growth).toBeLessThan(2100);
    expect(Math.abs((late?.growth ?? 0) - (early?.growth ?? 0))).toBeLessThan(20);
    // One of them asks whether the run has stored files that no snapshot names.
    expect(early?.calls).toBeLessThanOrEqual(25);
    expect(early?.bytesWritten).toBeGreaterThan(1000);
  });

  test('is what is new, also when the history is a window that slides', async () => {
    const kit = open();
    let base: StateBase | undefined;
    const growth: number[] = [];
    for (let no = 0; no < 300; no++) {
      const before = no === 0 ? 0 : await sizeOf('s');
      base = await turn(kit, 's', base, (state) => {
        const { history, ...rest } = exchange(state, no);
        return {
          ...rest,
          history: history.replace(history.toArray(Math.max(0, history.length - 100))),
        };
      });
      growth.push((await sizeOf('s')) - before);
    }
    expect(growth[299]).toBeLessThan((growth[10] ?? 0) + 100);
    const again = open();
    const loaded = await again.runs.load(again.scope, { sessionId: 's' });
    expect(loaded?.state.history.messages).toEqual(base?.state.history.messages);
  });

  test('stays what was new when snapshots of such a window with a first message are pruned', async () => {
    const kit = open();
    let base: StateBase | undefined;
    for (let no = 0; no < 120; no++) {
      base = await turn(kit, 's', base, (state) => {
        const { history, ...rest } = exchange(state, no);
        const first = history.slice(0, 1);
        return { ...rest, history: history.replace([...first, ...history.toArray().slice(-40)]) };
      });
    }
    const before = await sizeOf('s');
    await kit.maintenance.prune({ keepLast: 110 });
    const after = await sizeOf('s');
    expect(after).toBeLessThan(before);
    await kit.maintenance.prune({ keepLast: 50 });
    // The first one that is left has its whole window.
    expect(await sizeOf('s')).toBeLessThan((after * 70) / 110);
    expect(await kit.maintenance.verify()).toEqual([]);
    const again = open();
    const loaded = await again.runs.load(again.scope, { sessionId: 's' });
    expect(loaded?.state.history.messages).toEqual(base?.state.history.messages);
  });

  test('stays what was new when the snapshot that windows were cut from is pruned', async () => {
    const kit = open();
    let base: StateBase | undefined;
    for (let no = 0; no < 40; no++) {
      base = await turn(kit, 's', base, (state) => exchange(state, no));
    }
    for (let no = 0; no < 8; no++) {
      await turn(kit, 's', base, (state) => {
        const { history, ...rest } = exchange(state, 100 + no);
        return { ...rest, history: History.empty.replace(history.toArray().slice(2 * no + 2)) };
      });
    }
    const before = await sizeOf('s');
    await kit.maintenance.prune({ keepLast: 8 });
    expect(await sizeOf('s')).toBeLessThan(before);
    expect(await kit.maintenance.verify()).toEqual([]);
  });

  test('is its change, when a large custom document changes a little', async () => {
    const kit = open();
    const whole = toJson(
      { items: Array.from({ length: 200 }, (_, no) => ({ no, text: 'x'.repeat(200) })), last: 0 },
      'custom',
    );
    let base = await turn(kit, 's', undefined, (state) => ({ ...state, custom: whole }));
    expect(await sizeOf('s')).toBeGreaterThan(40_000);
    const before = await sizeOf('s');
    for (let no = 1; no <= 50; no++) {
      base = await turn(kit, 's', base, (state) => {
        const custom = state.custom as { items: readonly object[] };
        const items = custom.items.with(no, { no, text: `changed ${no}` });
        return { ...state, custom: toJson({ items, last: no }, 'custom') };
      });
    }
    expect(((await sizeOf('s')) - before) / 50).toBeLessThan(1100);
    const again = open();
    const loaded = await again.runs.load(again.scope, { sessionId: 's' });
    expect(loaded?.state.custom).toEqual(base.state.custom);
  });

  test('of a fork does not depend on how much it shares', async () => {
    const kit = open();
    let base: StateBase | undefined;
    const fork = async (name: string): Promise<number> => {
      const before = await sizeOf('s');
      const target = { sessionId: name, snapshotId: kit.id() };
      await kit.timeline.fork(kit.scope, base?.snapshotId ?? '', target);
      return (await sizeOf('s')) - before;
    };
    for (let no = 0; no < 10; no++)
      base = await turn(kit, 's', base, (state) => exchange(state, no));
    const early = await fork('f1');
    for (let no = 10; no < 200; no++)
      base = await turn(kit, 's', base, (state) => exchange(state, no));
    expect(Math.abs((await fork('f2')) - early)).toBeLessThan(20);
  });
});

describe('what another process reads', () => {
  test('is only what is new, also after a call that found a damaged session', async () => {
    const [writer, reader] = [open(), open()];
    let base: StateBase | undefined;
    for (let no = 0; no < 50; no++) {
      base = await turn(writer, 's', base, (state) => exchange(state, no));
    }
    await turn(writer, 'bad', undefined, (state) => exchange(state, 0));
    const journal = join(files.directory, 'sessions/_/chat/bad/journal.jsonl');
    await writeFile(journal, (await readFile(journal, 'utf8')).replace('question', 'quastion'));
    await reader.textsOf({ sessionId: 's' });
    await refused(reader.claim('bad'), 'DATA_LOSS');
    const read = await countFileWork(() => reader.textsOf({ sessionId: 's' }));
    expect(read.bytesRead).toBeLessThan(1000);
  });

  test('is the whole journal once, and then only what is new', async () => {
    const [writer, reader] = [open(), open()];
    let base: StateBase | undefined;
    for (let no = 0; no < 200; no++) {
      base = await turn(writer, 's', base, (state) => exchange(state, no));
    }
    const read = (): Promise<FileWork> => countFileWork(() => reader.textsOf({ sessionId: 's' }));
    expect((await read()).bytesRead).toBeGreaterThan(200_000);
    expect((await read()).bytesRead).toBeLessThan(1000);
    base = await turn(writer, 's', base, (state) => exchange(state, 200));
    expect((await read()).bytesRead).toBeLessThan(3000);
  });
});
