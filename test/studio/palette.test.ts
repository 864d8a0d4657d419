import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sqliteStore } from 'waymark/sqlite';
import { createStudioApp } from './app.ts';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let folder: string;
let studio: Studio;
let session: string;
let labelled: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-palette-'));
  studio = await openStudio(createStudioApp({ store: sqliteStore(join(folder, 'sessions.db')) }));
  const planner = studio.app.agent('trip-planner');
  const first = await planner.runText('Two days in Lisbon');
  session = first.sessionId;
  labelled = first.snapshotId ?? '';
  await planner.runText('I like museums', { sessionId: session });
  await planner.label(labelled, 'before the museums');
  await planner.updateSession(session, { title: 'Portugal' });
  await studio.app.agent('trouble').runText('rtl', { sessionId: 'other' });
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function paletteOn(page: Page) {
  const palette = page.getByRole('dialog', { name: 'Command palette' });
  return {
    palette,
    field: palette.getByRole('combobox'),
    row: (name: string | RegExp): Locator => palette.getByRole('option', { name }),
    async open(): Promise<void> {
      await page.getByRole('button', { name: 'Command palette' }).waitFor();
      await page.keyboard.press('Control+k');
      await palette.waitFor();
    },
  };
}

test('the palette opens from the message field and finds a session of another agent by its text', async () => {
  const { page, errors } = await studio.open('agents/trouble/other');
  await handsOn(page).field.focus();
  const { palette, field, row, open } = paletteOn(page);
  await open();
  await page.keyboard.type('museums');
  // Not in its title: the store has searched the messages.
  await row(/^Portugal trip-planner/).waitFor();
  await soon(() => row(/ trouble ·/).count()).toBe(0);
  await row(/^Portugal/).click();
  await palette.waitFor({ state: 'detached' });
  await handsOn(page)
    .row(/I like museums/)
    .waitFor();
  expect(page.url()).toContain(session);

  await open();
  await field.fill('nothing of this kind');
  await palette.getByText('Nothing found.').waitFor();
  await page.keyboard.press('Escape');
  await palette.waitFor({ state: 'detached' });
  expect(errors).toEqual([]);
});

test('a label leads to its snapshot, an agent to its page', async () => {
  const { page, errors } = await studio.open('runs');
  const { palette, row, open } = paletteOn(page);
  await open();
  await page.keyboard.type('before');
  await row(/^before the museums Portugal · turn 1/).click();
  await handsOn(page).pastBar.waitFor();
  expect(page.url()).toContain(`${session}/${labelled}`);
  await open();
  await page.keyboard.type('newsr');
  await row(/^newsroom/).waitFor();
  await page.keyboard.press('Enter');
  await palette.waitFor({ state: 'detached' });
  expect(page.url()).toContain('agents/newsroom');
  expect(errors).toEqual([]);
});

test('commands are listed with their keys, only those that apply, and run by the keyboard alone', async () => {
  const { page, errors } = await studio.open(`agents/trip-planner/${session}`);
  const { palette, row, open } = paletteOn(page);
  await handsOn(page)
    .row(/I like museums/)
    .waitFor();
  await open();
  await row(/^Label the selected snapshot Shift\+L$/).waitFor();
  // The head cannot be restored: it is what is shown.
  expect(await row(/^Restore/).count()).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Command palette' }).click();
  await row(/^Show keyboard shortcuts \?$/).waitFor();
  await page.keyboard.type('keyboard short');
  await page.keyboard.press('Enter');
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts and marks' });
  await help.waitFor();
  expect(await help.textContent()).toContain('Ctrl+K');
  await page.keyboard.press('Escape');
  await help.waitFor({ state: 'detached' });
  await handsOn(page)
    .row(/Two days/)
    .click();
  await handsOn(page).pastBar.waitFor();
  await open();
  await page.keyboard.type('restore');
  await row(/^Restore the selected snapshot r$/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('Later turns stay in the timeline.').waitFor();
  const { snapshotId } =
    (await studio.app.agent('trip-planner').getSnapshot({ sessionId: session })) ?? {};
  expect(snapshotId).toBe(labelled);
  await palette.waitFor({ state: 'detached' });
  expect(errors).toEqual([]);
});

test('a palette that was opened before the agents are known finds them', async () => {
  const { page, errors } = await studio.openBlank();
  const answered = Promise.withResolvers<void>();
  await page.route(/\/agents\/?$/, async (route) => {
    await answered.promise;
    await route.continue();
  });
  await page.goto(`${studio.url}/studio/#/agents/trip-planner/${session}`);
  const { row, open } = paletteOn(page);
  await open();
  await page.getByText('Looking for agents').waitFor();
  answered.resolve();
  await row(/^Portugal/).waitFor();
  expect(errors).toEqual([]);
});

test.each(['light', 'dark'] as const)(
  'the palette is usable by all, in %s',
  async (colorScheme) => {
    const { page, errors } = await studio.open(`agents/trip-planner/${session}`, { colorScheme });
    const what = colorScheme === 'light' ? 'everything' : 'contrast';
    const { field, row, open } = paletteOn(page);
    await open();
    await row(/^Portugal/).waitFor();
    expect(await findBarriers(page, what)).toEqual([]);
    await field.fill('nothing of this kind');
    await page.getByText('Nothing found.').waitFor();
    expect(await findBarriers(page, what)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 760 });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(390);
    expect(errors).toEqual([]);
  },
);
