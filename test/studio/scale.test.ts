import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, memoryStore, waymark } from 'waymark';
import { handsOn } from './support/hands.ts';
import { measureMainThread } from './support/main-thread.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

const turns = 2_000;
const branches = 50;

let studio: Studio;
let sessionId: string;

beforeAll(async () => {
  const app = waymark({ store: memoryStore() });
  sessionId = await growSession(app);
  studio = await openStudio(app);
});
afterAll(() => studio?.[Symbol.asyncDispose]());

/** A session of many turns, with a branch now and then from some way back. */
async function growSession(app: App): Promise<string> {
  const agent = app.defineCustomAgent(
    { name: 'long', initialState: { count: 0 } },
    async (session) => {
      await session.run(async () => {
        session.updateCustom((draft) => {
          (draft as { count: number }).count++;
        });
        const text =
          'A **short** answer, with `code`, a [link](https://example.com) and\n\n- a list\n- of two';
        session.addMessages({ role: 'model', content: [{ text }] });
      });
    },
  );
  const made: string[] = [];
  const every = turns / branches;
  let session: string | undefined;
  for (let turn = 0; turn < turns; turn++) {
    const isBranch = turn % every === every - 1;
    // From 3 to 14 turns back, without chance, so that every run measures the same.
    const from = isBranch ? made.at(-3 - ((turn * 37) % 12)) : made.at(-1);
    const output = await agent.runText(`Turn ${turn} of a long conversation`, {
      ...(session !== undefined && from !== undefined && { sessionId: session, snapshotId: from }),
    });
    session = output.sessionId;
    made.push(output.snapshotId ?? '');
  }
  return session ?? '';
}

test('two thousand snapshots with fifty branches scroll and are selected without a long task', async () => {
  const { page, errors } = await studio.open(`agents/long/${sessionId}`);
  const hands = handsOn(page);
  await soon(() => page.locator('[data-panel=timeline] header').textContent()).toContain('2,000');
  await page.locator('[data-panel=timeline] header', { hasText: '51 branches' }).waitFor();
  expect(await hands.rows.count()).toBeLessThan(100);
  await page.waitForTimeout(500);

  const scroll = async (): Promise<void> => {
    const box = await hands.timeline.boundingBox();
    await page.mouse.move((box?.x ?? 0) + 100, (box?.y ?? 0) + 300);
    for (let step = 0; step < 30; step++) await page.mouse.wheel(0, step % 2 ? 2_400 : -900);
  };
  const select = async (): Promise<void> => {
    await hands.press(...Array<string>(20).fill('k'), 'l', 'h', ...Array<string>(10).fill('j'));
    await hands.rows.nth(5).click();
    await hands.pastBar.waitFor();
    await soon(() => hands.messages.textContent()).toContain('Turn ');
    await page.keyboard.press('Escape');
    await hands.pastBar.waitFor({ state: 'detached' });
  };
  const { busy, passed } = await measureMainThread(studio.browser, page, async () => {
    await scroll();
    await select();
    await page.waitForTimeout(300);
  });
  console.info(
    `${busy.length} tasks; the longest took ${busy[0]} ms of the processor, ${passed[0]} ms on the clock`,
  );
  expect(busy.length).toBeGreaterThan(100);
  expect(busy[0]).toBeLessThan(100);
  expect(errors).toEqual([]);
});

test('the first load is small', async () => {
  const assets = join(studio.folder, 'assets');
  const sizes: Record<string, number> = {};
  for (const name of await readdir(assets)) {
    sizes[name] = gzipSync(await readFile(join(assets, name)), { level: 9 }).length;
  }
  console.info('gzipped bytes:', sizes);
  const script = Object.entries(sizes).filter(([name]) => name.endsWith('.js'));
  expect(script.reduce((sum, [, size]) => sum + size, 0)).toBeLessThan(250_000);
});
