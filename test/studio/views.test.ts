import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;
let session: string;

beforeAll(async () => {
  studio = await openStudio();
  session = await fillStudio();
});
afterAll(() => studio?.[Symbol.asyncDispose]());

/** A session with two branches, a label, and a booking that waits. */
async function fillStudio(): Promise<string> {
  const planner = studio.app.agent('trip-planner');
  const first = await planner.runText('Two days in Lisbon');
  const at = { sessionId: first.sessionId };
  await planner.runText('I like museums', at);
  const other = await planner.runText('I like food', { snapshotId: first.snapshotId ?? '' });
  await planner.label(other.snapshotId ?? '', 'good');
  await planner.runText('Book a small hotel', at);
  await planner.updateSession(first.sessionId, { title: 'Two days in Lisbon' });
  await planner.runText('Book a small hotel');
  await studio.app.agent('filer').runText('files', { sessionId: 'files' });
  await studio.app.agent('trouble').runText('table', { sessionId: 'table' });
  return first.sessionId;
}

/** Each view: how to come to it, and what must be there before it is looked at. */
const views: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  'an empty session': (page) => page.getByText('Write a message below.').waitFor(),
  'a conversation that waits for an approval': async (page) => {
    await goTo(page, `agents/trip-planner/${session}`);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await handsOn(page)
      .row(/I like museums/)
      .waitFor();
    await page.getByText('Respond for the tool').click();
  },
  'the past': async (page) => {
    await handsOn(page)
      .row(/Two days/)
      .click();
    await handsOn(page).pastBar.waitFor();
    await soon(() => handsOn(page).inspector.textContent()).toContain('walking');
  },
  'the state': (page) => handsOn(page).tab('State'),
  'the trace': async (page) => {
    await handsOn(page).tab('Trace');
    await handsOn(page)
      .inspector.getByRole('button', { name: /tool weather/ })
      .click();
  },
  'a comparison': async (page) => {
    await handsOn(page).press('c');
    await page.getByText('The same up to').waitFor();
  },
  'the help': (page) => page.getByRole('button', { name: 'Keyboard shortcuts' }).click(),
  'a label being written': async (page) => {
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await handsOn(page).press('L');
    await page.getByLabel('Label', { exact: true }).waitFor();
  },
  'the agents': async (page) => {
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Agent:/ }).click();
    await page.getByRole('menuitemradio', { name: /newsroom/ }).waitFor();
  },
  files: async (page) => {
    await goTo(page, 'agents/filer/files');
    await handsOn(page).tab('Files');
    await page.getByRole('button', { name: /notes.md/ }).click();
  },
  'a table and code': async (page) => {
    await goTo(page, 'agents/trouble/table');
    await page.getByRole('table').waitFor();
  },
  runs: async (page) => {
    await goTo(page, 'runs');
    await page.getByText('Nothing is running.').waitFor();
  },
  'an inbox with two requests alike': async (page) => {
    await goTo(page, 'inbox');
    await soon(() => page.getByRole('button', { name: 'Approve' }).count()).toBe(2);
  },
  'no such agent': async (page) => {
    await goTo(page, 'agents/nobody');
    await page.getByText('There is no agent “nobody” here.').waitFor();
  },
};

function goTo(page: Page, place: string): Promise<unknown> {
  return page.goto(`${studio.url}/studio/#/${place}`);
}

test.each(['light', 'dark'] as const)('every view is usable by all, in %s', async (colorScheme) => {
  const { page, errors } = await studio.open('', { colorScheme });
  const what = colorScheme === 'light' ? 'everything' : 'contrast';
  for (const [name, reach] of Object.entries(views)) {
    await reach(page);
    expect([name, await findBarriers(page, what)]).toEqual([name, []]);
  }
  expect(errors).toEqual([]);
});

describe('on a narrow screen', () => {
  test('the conversation comes first, the rest as sheets, and nothing sticks out', async () => {
    const { page, errors } = await studio.open(`agents/trip-planner/${session}`, {
      viewport: { width: 380, height: 760 },
    });
    const hands = handsOn(page);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await hands.timeline.isVisible()).toBe(false);
    const agentName = page.locator('.agent-button > span').first();
    expect((await agentName.boundingBox())?.width).toBeGreaterThan(60);
    expect(await findBarriers(page)).toEqual([]);
    for (const panel of ['Sessions', 'Timeline', 'Inspector']) {
      await page.getByRole('button', { name: `Show or hide: ${panel}` }).click();
      const sheet = page.locator('.panel[data-sheet]');
      await sheet.waitFor();
      expect([panel, await findBarriers(page)]).toEqual([panel, []]);
      await page.keyboard.press('Escape');
      await sheet.waitFor({ state: 'detached' });
    }
    // A snapshot chosen in the sheet closes it and shows the past.
    await page.getByRole('button', { name: 'Show or hide: Timeline' }).click();
    await hands.row(/I like museums/).click();
    await hands.pastBar.waitFor();
    expect(await page.locator('.panel[data-sheet]').count()).toBe(0);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(380);
    expect(errors).toEqual([]);
  });

  test.each([640, 904, 1240, 1920])('at %i pixels nothing sticks out', async (width) => {
    const { page } = await studio.open(`agents/trip-planner/${session}`, {
      viewport: { width, height: 800 },
    });
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const reach = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(reach).toBeLessThanOrEqual(width);
    await handsOn(page).timeline.waitFor();
  });
});
