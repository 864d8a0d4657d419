import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, agentTool, type Store, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let folder: string;
let store: Store;
let studio: Studio;
let isBroken = true;
const released = Promise.withResolvers<void>();
let first: { readonly sessionId: string; readonly snapshotId: string | undefined };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-lists-'));
  store = sqliteStore(join(folder, 'sessions.db'));
  const app = waymark({ store, price: () => ({ USD: 250_000 }) });
  defineAgents(app);
  studio = await openStudio(app);
  const worker = app.agent('worker');
  const { sessionId, snapshotId } = await worker.runText('hello');
  first = { sessionId, snapshotId };
  await (await worker.start('post the letters', { sessionId: first.sessionId }))
    .wait()
    .catch(() => {});
  await app.agent('manager').runText('delegate this');
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function defineAgents(app: App): void {
  const post = (): string => {
    if (isBroken) throw new TypeError('stamps is undefined');
    return 'Posted.';
  };
  const worker = app.defineAgent({
    name: 'worker',
    description: 'Cannot post letters before its bug is fixed.',
    model: scriptedModel(
      { patterns: [[/letters/, post]], otherwise: 'Hello.' },
      { name: 'script' },
    ),
  });
  app.defineCustomAgent({ name: 'painter' }, (session) =>
    session.run(async () => {
      await released.promise;
      session.addMessages({ role: 'model', content: [{ text: 'Painted.' }] });
    }),
  );
  app.defineAgent({
    name: 'manager',
    model: scriptedModel({
      patterns: [[/.+/, { toolCalls: [{ name: 'worker', input: { message: 'hi' } }] }]],
      afterTools: () => 'Done.',
      otherwise: '-',
    }),
    tools: [agentTool(worker)],
  });
}

test('a failed run is listed with its input and stack, and retried from the same snapshot as a new run', async () => {
  const { page, errors } = await studio.open('runs');
  const ended = page.getByRole('region', { name: 'Ended' });
  await ended.getByRole('button', { name: 'Failed' }).click();
  const failed = ended.getByRole('listitem').filter({ hasText: 'post the letters' });
  await failed.getByText('worker · background · failed').waitFor();
  await failed.locator('summary', { hasText: 'stamps is undefined' }).click();
  const stack = failed.getByRole('group', { name: 'Error with stack' });
  await soon(() => stack.textContent()).toContain('lists.test.ts');
  await soon(() => ended.getByRole('listitem').count()).toBe(1);

  isBroken = false;
  await failed.getByRole('button', { name: 'Retry: post the letters' }).click();
  await page.getByText('Retried from the same snapshot.').waitFor();
  await ended.getByRole('button', { name: 'Background' }).click();
  const retried = ended.getByRole('listitem').filter({ hasText: 'succeeded after' });
  await retried.getByText('post the letters').waitFor();
  expect(await retried.getByRole('button', { name: /^Retry/ }).count()).toBe(0);
  const { items } = await studio.app
    .agent('worker')
    .listSnapshots(first.sessionId, { includeOrphaned: true });
  expect(
    items
      .filter(({ parentId }) => parentId === first.snapshotId)
      .map(({ status }) => status)
      .sort(),
  ).toEqual(['failed', 'succeeded']);

  await failed.getByRole('link', { name: 'post the letters' }).first().click();
  await handsOn(page).timeline.waitFor();
  expect(page.url()).toContain(first.sessionId);
  expect(errors).toEqual([]);
});

test('the turns of all sessions are listed with their figures, filtered, and lead to their place', async () => {
  const { page, errors } = await studio.open('traces');
  const row = (words: string) => page.getByRole('row').filter({ hasText: words });
  await row('delegate this').waitFor();
  // Two model calls of the manager and one of the worker, each for $0.25.
  const cells = await row('delegate this').getByRole('cell').allTextContents();
  expect([cells[1], cells[4], cells[5], cells[7]]).toEqual(['manager', '3', '1', '$0.75']);
  await row('stamps is undefined').waitFor();
  await page.getByRole('combobox', { name: 'Agent' }).selectOption('manager');
  await soon(() => page.getByRole('row').count()).toBe(2);
  await page.getByRole('combobox', { name: 'Agent' }).selectOption('All agents');
  await page.getByRole('searchbox', { name: 'Filter by words' }).fill('hello');
  await soon(() => page.getByRole('row').count()).toBe(2);
  await page.getByRole('link', { name: 'hello' }).click();
  await handsOn(page).row(/hello/).waitFor();
  expect(page.url()).toContain(`worker/${first.sessionId}/${first.snapshotId}`);
  expect(errors).toEqual([]);
});

test('what was spent is summed up by day, agent, model and session, as the store counts it', async () => {
  const { page, errors } = await studio.open('usage');
  const table = page.getByRole('table');
  await table.waitFor();
  const sums = (await store.spend?.sums('agent', {})) ?? [];
  const spent = sums.reduce((sum, { usage }) => sum + (usage.cost?.USD ?? 0), 0);
  const total = `$${(spent / 1e6).toFixed(2)}`;
  await soon(() => page.locator('.usage-totals').textContent()).toContain(total);
  const [day = ''] = await table.getByRole('row').nth(1).getByRole('cell').allTextContents();
  expect(day).toMatch(/^\d{4}-\d\d-\d\d$/);
  const by = async (name: string): Promise<readonly string[]> => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('columnheader', { name, exact: true }).waitFor();
    const rows = await table.getByRole('row').allTextContents();
    return rows.slice(1);
  };
  const agents = await by('Agent');
  expect(agents).toHaveLength(sums.length);
  for (const { key, usage } of sums) {
    const amount = `$${((usage.cost?.USD ?? 0) / 1e6).toFixed(2)}`;
    expect(agents.find((text) => text.startsWith(key))).toContain(amount);
  }
  expect((await by('Model')).some((text) => text.startsWith('script'))).toBe(true);
  expect((await by('Session')).length).toBeGreaterThanOrEqual(2);
  await table.getByRole('link').first().click();
  await handsOn(page).timeline.waitFor();
  expect(errors).toEqual([]);
});

test.each(['light', 'dark'] as const)('the lists are usable by all, in %s', async (colorScheme) => {
  const { page, errors } = await studio.open('runs', { colorScheme });
  const what = colorScheme === 'light' ? 'everything' : 'contrast';
  const shown = { runs: 'listitem', traces: 'table', usage: 'table' } as const;
  for (const [view, role] of Object.entries(shown)) {
    await page.goto(`${studio.url}/studio/#/${view}`);
    await page.getByRole('main').getByRole(role).first().waitFor();
    expect([view, await findBarriers(page, what)]).toEqual([view, []]);
  }
  await page.setViewportSize({ width: 390, height: 760 });
  for (const [view, role] of Object.entries(shown)) {
    await page.goto(`${studio.url}/studio/#/${view}`);
    await page.getByRole('main').getByRole(role).first().waitFor();
    expect([view, await findBarriers(page, what)]).toEqual([view, []]);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect([view, width <= 390]).toEqual([view, true]);
  }
  expect(errors).toEqual([]);
});

test('a session whose first turn runs in the background is listed by what was asked', async () => {
  const run = await studio.app.agent('painter').start('Paint the fence');
  const { page, errors } = await studio.open('agents/painter');
  const item = page.locator('.session-item');
  await soon(() => item.textContent()).toContain('Paint the fence');
  expect(await item.textContent()).toContain('running');
  released.resolve();
  await run.wait();
  await soon(() => item.textContent()).toContain('1 turn');
  expect(await item.textContent()).toContain('Paint the fence');
  expect(errors).toEqual([]);
});
