import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Response } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { handsOn } from './support/hands.ts';
import { measureMainThread } from './support/main-thread.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

const turns = 2_000;
const branches = 50;

/** Turns of the session that is far too long to be loaded. */
const manyTurns = 20_000;

/** How long a task of the page may be at most, in milliseconds of the processor: a page answers well below 100 ms. */
const longest = 80;

let studio: Studio;
let sessionId: string;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-studio-scale-'));
  const app = waymark({ store: sqliteStore(join(folder, 'sessions.db')) });
  sessionId = await growSession(app);
  await growLongSession(app);
  studio = await openStudio(app);
}, 600_000);
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function isJson(response: Response): boolean {
  return response.headers()['content-type']?.includes('json') ?? false;
}

/** A session of one line of turns. */
async function growLongSession(app: App): Promise<void> {
  const agent = app.defineCustomAgent({ name: 'longest' }, async (session) => {
    await session.run(() => {
      session.addMessages({ role: 'model', content: [{ text: 'A **short** answer.' }] });
    });
  });
  for (let turn = 0; turn < manyTurns; turn++) {
    await agent.runText(`Turn ${turn} of many`, { sessionId: 'longest' });
  }
}

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

test('two thousand snapshots with fifty branches open, scroll and are selected without a long task', async () => {
  const slowest: Record<string, number[]> = {};
  // New pages, each from its first script on: the first use of everything compiles and lays out most.
  for (let fresh = 0; fresh < 3; fresh++) {
    const { page, errors } = await studio.openBlank();
    // Searches by role and name would take time of the page themselves.
    const counts = page.locator('[data-panel=timeline] header');
    const timeline = page.locator('.timeline');
    const rows = page.locator('.timeline-row');
    const pastBar = page.locator('.past-bar');
    const measured: Readonly<Record<string, () => Promise<void>>> = {
      open: async () => {
        await page.goto(`${studio.url}/studio/#/agents/long/${sessionId}`);
        await soon(() => counts.textContent()).toContain('last 400');
        await soon(() => page.locator('.turns').textContent()).toContain(`Turn ${turns - 1} of`);
      },
      // Earlier ones come when somebody scrolls up to them, and what was in view stays there.
      load: async () => {
        await expect
          .poll(async () => {
            await timeline.evaluate((element) => element.scrollTo(0, 0));
            return counts.textContent();
          })
          .toContain('2,000');
        await soon(() => counts.textContent()).toContain('51 branches');
      },
      scroll: async () => {
        const box = await timeline.boundingBox();
        await page.mouse.move((box?.x ?? 0) + 100, (box?.y ?? 0) + 300);
        for (let step = 0; step < 30; step++) await page.mouse.wheel(0, step % 2 ? 2_400 : -900);
      },
      select: async () => {
        await timeline.focus();
        const keys = [...Array<string>(20).fill('k'), 'l', 'h', ...Array<string>(10).fill('j')];
        for (const key of keys) await page.keyboard.press(key);
        await rows.nth(5).click();
        await pastBar.waitFor();
        await page.locator('.turns[data-past]').waitFor();
        await page.keyboard.press('Escape');
        await pastBar.waitFor({ state: 'detached' });
        await page.locator('.turns:not([data-past])').waitFor();
      },
    };
    for (const [what, work] of Object.entries(measured)) {
      const { busy, passed } = await measureMainThread(studio.browser, page, work);
      console.info(
        `${what}: ${busy.length} tasks; the longest took ${busy[0]} ms of the processor, ${passed[0]} ms on the clock`,
      );
      expect(busy.length, what).toBeGreaterThan(20);
      slowest[what] = [...(slowest[what] ?? []), busy[0] ?? 0];
    }
    expect(await rows.count()).toBeLessThan(100);
    expect(errors).toEqual([]);
    // What an open page does would count for the next one.
    await page.context().close();
  }
  // A collection of garbage can fall into one of them.
  for (const [what, tasks] of Object.entries(slowest)) {
    expect(tasks.sort((a, b) => a - b)[1], what).toBeLessThan(longest);
  }
});

test('S341: a long session opens with its last messages, and earlier ones are loaded on the way up', async () => {
  const { page, errors } = await studio.open();
  const loaded: number[] = [];
  page.on('response', async (response) => {
    if (!/\/(sessions|snapshots)\/[^/?]+(\/head)?(\?|$)/.test(response.url())) return;
    const read = await response.json().catch(() => undefined);
    if (read?.state?.messages !== undefined) loaded.push(read.state.messages.length);
  });
  await page.goto(`${studio.url}/studio/#/agents/long/${sessionId}`);
  const { messages } = handsOn(page);
  await soon(() => messages.textContent()).toContain(`Turn ${turns - 1} of`);
  await soon(async () => loaded.length).toBeGreaterThan(0);
  const button = page.locator('.turns-frame > .earlier');
  const more = async (): Promise<number> =>
    Number((await button.textContent())?.replaceAll(',', '').match(/(\d+) more messages/)?.[1]);
  const before = await more();
  expect(before).toBeGreaterThan(turns);
  const scroller = page.locator('.conversation .scroller');
  const { busy, passed } = await measureMainThread(studio.browser, page, async () => {
    // The first ones render what is loaded; then more is loaded.
    await expect
      .poll(async () => {
        await scroller.evaluate((element) => element.scrollTo(0, 0));
        return await more();
      })
      .toBeLessThan(before - 150);
  });
  console.info(
    `scrolling up: the longest task took ${busy[0]} ms of the processor, ${passed[0]} ms on the clock`,
  );
  expect(busy[0]).toBeLessThan(longest);
  expect(Math.max(...loaded)).toBeLessThanOrEqual(100);
  expect(errors).toEqual([]);
  // What an open page does would count for the next one.
  await page.context().close();
});

test('S544: a session of 20,000 turns opens without loading them', async () => {
  const { page, errors } = await studio.open('agents/long');
  const hands = handsOn(page);
  await hands.field.waitFor();
  const asked: string[] = [];
  /** Messages and snapshots that an answer contains. */
  const sizes = { messages: 0, snapshots: 0 };
  let bytes = 0;
  page.on('response', async (response) => {
    const body = await response.body().catch(() => undefined);
    if (body === undefined || !response.url().includes('/longest')) return;
    asked.push(new URL(response.url()).pathname.split('/').at(-1) ?? '');
    bytes += body.length;
    const read = isJson(response) ? JSON.parse(body.toString()) : undefined;
    sizes.messages = Math.max(sizes.messages, read?.state?.messages?.length ?? 0);
    sizes.snapshots = Math.max(sizes.snapshots, read?.items?.length ?? 0);
  });
  await page.evaluate(() => {
    const seen: number[] = [];
    Object.assign(window, { tasks: seen });
    const observer = new PerformanceObserver((list) =>
      seen.push(...list.getEntries().map(({ duration }) => duration)),
    );
    observer.observe({ type: 'longtask' });
  });
  const counts = page.locator('[data-panel=timeline] header');
  // Searches by role and name would take time of the page themselves.
  const turns = page.locator('.turns');
  const { busy, passed } = await measureMainThread(studio.browser, page, async () => {
    await page.evaluate(() => {
      location.hash = '#/agents/longest/longest';
    });
    await soon(() => turns.textContent()).toContain(`Turn ${manyTurns - 1} of`);
    await soon(() => counts.textContent()).toContain('last 400 snapshots');
    await page.locator('.timeline').focus();
    for (let step = 0; step < 10; step++) await page.keyboard.press('k');
    await page.locator('.past-bar').waitFor();
    await page.keyboard.press('Escape');
    // The first part of what is earlier.
    await page.locator('.panel > .earlier').click();
    await soon(() => counts.textContent()).toContain('last 800 snapshots');
  });
  await hands.say('One more');
  await soon(() => counts.textContent()).toContain('last 801 snapshots');
  const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
  console.info(
    `${asked.length} requests with ${bytes} bytes; longest task ${busy[0]} ms of the processor, ${passed[0]} ms on the clock; ` +
      `long tasks of the page: ${tasks.map(Math.round).join(', ')}`,
  );
  expect(asked.filter((name) => name === 'snapshots').length).toBeLessThan(15);
  expect(bytes).toBeLessThan(2_000_000);
  // Time of the processor: on a busy machine, more passes on the clock.
  expect(busy[0]).toBeLessThan(longest);
  // No answer and no list on the page grows with the session.
  expect(sizes.messages).toBeLessThanOrEqual(100);
  expect(sizes.snapshots).toBeLessThanOrEqual(200);
  const drawn = await page.evaluate(() => ({
    rows: document.querySelectorAll('[role=option]').length,
    elements: document.querySelectorAll('*').length,
  }));
  console.info('drawn:', drawn, 'at most in an answer:', sizes);
  expect(drawn.rows).toBeLessThan(100);
  expect(drawn.elements).toBeLessThan(4_000);
  expect(errors).toEqual([]);
  // What an open page does would count for the next one.
  await page.context().close();
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
