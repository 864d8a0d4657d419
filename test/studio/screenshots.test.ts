import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, tool } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { directory, workspaceTools } from 'waymark/workspace';
import { z } from 'zod';
import { createStudioApp } from './app.ts';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

// Not a part of `npm test`: SCREENSHOTS=<folder> vitest run test/studio/screenshots.test.ts. STATES and SIZES take parts of it.
const { SCREENSHOTS: out, STATES = '', SIZES = '' } = process.env;

const sizes = [
  { name: '1440', width: 1440, height: 900 },
  { name: '1280', width: 1280, height: 800 },
  { name: '768', width: 768, height: 1024 },
  { name: '390', width: 390, height: 844 },
].filter(({ name }) => SIZES === '' || SIZES.split(',').includes(name));

type Hands = ReturnType<typeof handsOn>;

/** A state of Studio: the data it needs, the place it is at, and what is done there. */
interface State {
  readonly name: string;
  fill?(app: App): Promise<string>;
  act?(page: Page, hands: Hands): Promise<void>;
}

/** Opens the inspector where it is no column. */
async function inspect(page: Page, tab: string): Promise<void> {
  const there = page.getByRole('tab', { name: tab });
  if (!(await there.isVisible())) {
    await page.getByRole('button', { name: 'Show or hide: Inspector' }).click();
  }
  await there.click();
}

const all: readonly State[] = [
  {
    // The pictures of the README at 1280, docs/images/studio-restore-*.png.
    name: 'restore',
    async fill(app) {
      const work = join(folder, 'trip');
      await mkdir(work);
      const book = tool(
        {
          name: 'book',
          description: 'Books a hotel',
          input: z.object({ hotel: z.string() }),
          undo: () => undefined,
        },
        () => ({ id: 'booking-1' }),
      );
      const write = {
        name: 'write',
        input: { path: 'plan.md', content: '# Lisbon\n\nThe Ritz\n' },
      };
      const traveller = app.defineAgent({
        name: 'traveller',
        model: scriptedModel({
          patterns: [
            [/Ritz/, { toolCalls: [{ name: 'book', input: { hotel: 'Ritz' } }, write] }],
            [/Ann/, { toolCalls: [{ name: 'mail', input: { to: 'Ann' } }] }],
          ],
          afterTools: () => 'Done.',
          otherwise: 'Museums on the first day, the sea on the second.',
        }),
        workspace: directory(work),
        tools: [
          book,
          tool(
            { name: 'mail', description: 'Sends a mail', input: z.object({ to: z.string() }) },
            () => 'sent',
          ),
          workspaceTools(),
        ],
      });
      const { sessionId } = await traveller.run('Two days in Lisbon');
      await traveller.run('Book the Ritz', { sessionId });
      await traveller.run('Tell Ann', { sessionId });
      return `agents/traveller/${sessionId}`;
    },
    async act(page) {
      const timeline = page.getByRole('listbox', { name: 'Timeline' });
      if (!(await timeline.isVisible())) {
        await page.getByRole('button', { name: 'Show or hide: Timeline' }).click();
      }
      await timeline.getByRole('option').first().click();
      await page.getByRole('button', { name: 'Restore', exact: true }).first().click();
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    // The pictures of the guide and the site, docs/images/studio-*.png.
    name: 'readme',
    async fill(app) {
      const planner = app.agent('trip-planner');
      const { sessionId } = await planner.runText('Two days in Lisbon');
      const museums = await planner.runText('I like museums', { sessionId });
      await planner.label(museums.snapshotId ?? '', 'good');
      await planner.runText('What is the weather in Porto?', { sessionId });
      await planner.runText('I like food', { snapshotId: museums.snapshotId ?? '' });
      await planner.runText('Book a small hotel', { sessionId });
      await planner.updateSession(sessionId, { title: 'Trip to Lisbon' });
      return `agents/trip-planner/${sessionId}`;
    },
    async act(page, hands) {
      if (await page.getByRole('tab', { name: 'Trace' }).isVisible()) await hands.tab('Trace');
    },
  },
  { name: 'empty', fill: async () => 'agents/trip-planner' },
  {
    name: 'conversation-with-tools',
    async fill(app) {
      const planner = app.agent('trip-planner');
      const { sessionId } = await planner.runText('Two days in Lisbon');
      await planner.runText('I like museums', { sessionId });
      return `agents/trip-planner/${sessionId}`;
    },
  },
  {
    name: 'model-call',
    async fill(app) {
      const { sessionId } = await app.agent('trip-planner').runText('Two days in Lisbon');
      await app.agent('trip-planner').runText('I like museums', { sessionId });
      return `agents/trip-planner/${sessionId}`;
    },
    async act(page) {
      await inspect(page, 'Trace');
      await page
        .getByRole('button', { name: /^model / })
        .last()
        .click();
      await page.getByRole('region', { name: /^Model call/ }).waitFor();
      await page.getByRole('button', { name: 'Open in full size' }).click();
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'approval',
    async fill(app) {
      const planner = app.agent('trip-planner');
      const { sessionId } = await planner.runText('Two days in Lisbon');
      await planner.runText('Book the hotel', { sessionId });
      return `agents/trip-planner/${sessionId}`;
    },
  },
  {
    name: 'branch-tree',
    async fill(app) {
      const planner = app.agent('trip-planner');
      const first = await planner.runText('Two days in Lisbon');
      const at = { sessionId: first.sessionId };
      await planner.runText('I like museums', at);
      await planner.runText('And trams', at);
      const food = await planner.runText('I like food', { snapshotId: first.snapshotId ?? '' });
      await planner.label(food.snapshotId ?? '', 'food tour');
      await planner.runText('And wine', at);
      await planner.runText('I like beaches', { snapshotId: first.snapshotId ?? '' });
      return `agents/trip-planner/${first.sessionId}`;
    },
    async act(page) {
      const isColumn = await page.evaluate(() => matchMedia('(min-width: 640px)').matches);
      if (!isColumn) await page.getByRole('button', { name: 'Show or hide: Timeline' }).click();
      await page.getByRole('listbox', { name: 'Timeline' }).waitFor();
    },
  },
  {
    name: 'compare',
    async fill(app) {
      const planner = app.agent('trip-planner');
      const first = await planner.runText('Two days in Lisbon');
      const museums = await planner.runText('I like museums', { sessionId: first.sessionId });
      await planner.runText('I like food', { snapshotId: first.snapshotId ?? '' });
      return `agents/trip-planner/${first.sessionId}?base=${museums.snapshotId}`;
    },
  },
  {
    name: 'background-run',
    async fill(app) {
      const task = await app.agent('researcher').start('The history of tea');
      return `agents/researcher/${task.sessionId}`;
    },
  },
  {
    name: 'failed-first-turn',
    async fill(app) {
      await app
        .agent('thrower')
        .runText('Plan my week')
        .catch(() => {});
      const { items } = await app.agent('thrower').listSessions();
      return `agents/thrower/${items[0]?.sessionId}`;
    },
  },
  {
    name: 'failed-tool',
    async fill(app) {
      const { sessionId } = await app.agent('trouble').runText('break it');
      return `agents/trouble/${sessionId}`;
    },
    async act(_, hands) {
      await hands.messages.locator('summary').first().click();
    },
  },
  {
    name: 'failed-run',
    async fill(app) {
      const task = await app.agent('thrower').start('Plan my month');
      await task.wait().catch(() => {});
      return `agents/thrower/${task.sessionId}`;
    },
  },
  {
    name: 'edit-state',
    async fill(app) {
      const { sessionId } = await app.agent('trip-planner').runText('Two days in Lisbon');
      return `agents/trip-planner/${sessionId}`;
    },
    async act(page) {
      await inspect(page, 'State');
      await page.getByRole('button', { name: 'Edit the custom state' }).click();
      await page.getByRole('dialog', { name: 'Edit the custom state' }).waitFor();
    },
  },
  {
    name: 'inbox',
    async fill(app) {
      await app.agent('trip-planner').runText('Book a small hotel');
      await app.agent('trouble').runText('ask me');
      return 'inbox';
    },
  },
  {
    name: 'palette',
    async fill(app) {
      const { sessionId } = await app.agent('trip-planner').runText('Two days in Lisbon');
      return `agents/trip-planner/${sessionId}`;
    },
    async act(page) {
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'replay',
    async fill(app) {
      const { sessionId } = await app.agent('trip-planner').runText('Two days in Oslo');
      await app.agent('trip-planner').runText('I like museums', { sessionId });
      return `agents/trip-planner/${sessionId}`;
    },
    async act(page, hands) {
      await hands.messages.getByRole('button', { name: 'Run again with…: turn 2' }).click();
      const dialog = page.getByRole('dialog', { name: 'Run turn 2 again with…' });
      await dialog.getByLabel('System prompt').fill('Answer in one word.');
      await dialog.getByRole('button', { name: 'Run and compare' }).click();
      await hands.comparison.waitFor();
    },
  },
  { name: 'runs', fill: async () => 'runs' },
  { name: 'traces', fill: async () => 'traces' },
  { name: 'usage', fill: async () => 'usage' },
  {
    name: 'tools',
    fill: async () => 'tools',
    async act(page) {
      await page.getByText('weather', { exact: true }).first().click();
      await loaded(page);
    },
  },
  {
    name: 'owners',
    async fill(app) {
      const planner = app.agent('trip-planner');
      for (const owner of ['ann', 'bob']) await planner.runText('Two days in Lisbon', { owner });
      const { sessionId } = await planner.runText('A weekend in Porto', { owner: 'ann' });
      return `agents/trip-planner/${sessionId}?owner=ann`;
    },
    async act(page) {
      const field = page.getByLabel('Owner');
      if (!(await field.isVisible())) {
        await page.getByRole('button', { name: 'Show or hide: Sessions' }).click();
      }
      await field.waitFor();
    },
  },
  {
    name: 'search',
    fill: async () => 'agents/trip-planner',
    async act(page) {
      const search = page.locator('[data-search]');
      if (!(await search.isVisible())) {
        await page.getByRole('button', { name: 'Show or hide: Sessions' }).click();
      }
      await search.fill('museums');
    },
  },
  {
    name: 'files-with-diff',
    async fill(app) {
      const { sessionId } = await app.agent('writer').runText('Write about tea');
      await app.agent('writer').runText('Make it shorter', { sessionId });
      return `agents/writer/${sessionId}`;
    },
    async act(page) {
      await inspect(page, 'Files');
      const changes = page.getByRole('button', { name: 'Changes', exact: true });
      if ((await changes.count()) > 0 && (await changes.isEnabled())) await changes.click();
    },
  },
  {
    name: 'long-names',
    async fill(app) {
      const { sessionId } = await app.agent('filer').runText('files');
      return `agents/filer/${sessionId}`;
    },
    act: (page) => inspect(page, 'Files'),
  },
  {
    name: 'right-to-left',
    async fill(app) {
      const { sessionId } = await app.agent('trouble').runText('rtl');
      return `agents/trouble/${sessionId}`;
    },
  },
  {
    name: 'huge-message',
    async fill(app) {
      const text = 'A long message that goes on and on. '.repeat(28_000);
      const { sessionId } = await app.agent('story').runText(text);
      return `agents/story/${sessionId}`;
    },
  },
  {
    name: 'many-turns',
    async fill(app) {
      // The examples answer as slowly as models do.
      const diary = app.defineCustomAgent({ name: 'diary' }, (session) =>
        session.run(() => {
          session.addMessages({ role: 'model', content: [{ text: 'A **short** answer.' }] });
        }),
      );
      for (let n = 1; n <= 2_000; n++) await diary.runText(`Day ${n}`, { sessionId: 'diary' });
      return 'agents/diary/diary';
    },
  },
  {
    name: 'offline',
    async fill(app) {
      const { sessionId } = await app.agent('story').runText('Look around');
      return `agents/story/${sessionId}`;
    },
    async act(page) {
      await page.context().setOffline(true);
      await page.getByRole('alert').filter({ hasText: 'not answering' }).waitFor();
    },
  },
];
/** Waits until nothing on the page is being loaded, and what follows is drawn. */
async function loaded(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle', { timeout: 5_000 }).catch(() => {});
  await soon(() => page.getByText(/^(Loading|Looking for agents)/).count()).toBe(0);
  await page.waitForTimeout(700);
}

const states = all.filter(({ name }) => STATES === '' || STATES.split(',').includes(name));

let studio: Studio;
let folder: string;

beforeAll(async () => {
  if (out === undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'waymark-screenshots-'));
  await mkdir(out, { recursive: true });
  const store = sqliteStore(join(folder, 'sessions.db'));
  studio = await openStudio(createStudioApp({ store, pauseMs: 60_000 }), {
    studioData: join(folder, 'studio'),
  });
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

test.skipIf(out === undefined).for(states)('$name', { timeout: 600_000 }, async (state) => {
  const place = (await state.fill?.(studio.app)) ?? '';
  const barriers: string[] = [];
  for (const { name, ...viewport } of sizes) {
    const { page, errors } = await studio.open(place, { viewport, colorScheme: 'light' });
    const hands = handsOn(page);
    await page.getByRole('main').waitFor();
    await loaded(page);
    await state.act?.(page, hands);
    await loaded(page);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(out ?? '', `${state.name}-${name}-${colorScheme}.png`) });
      const found = await findBarriers(page, colorScheme === 'light' ? 'everything' : 'contrast');
      barriers.push(...found.map((each) => `${name} ${colorScheme}: ${each}`));
    }
    if (state.name !== 'offline') expect(errors).toEqual([]);
    await page.context().close();
  }
  expect(barriers).toEqual([]);
});
