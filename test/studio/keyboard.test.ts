import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createStudioApp } from './app.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { stores, type TestStore } from './support/stores.ts';
import { openStudio, type Studio } from './support/studio.ts';

/** What has the focus: its name, and whether one sees that it has it. */
interface Focused {
  readonly name: string;
  readonly isSeen: boolean;
  /** Nothing has it: behind the last stop comes the browser, and then the first one. */
  readonly isPage: boolean;
}

const focused = (page: Page): Promise<Focused> =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLElement;
    const name = element.getAttribute('aria-label') ?? element.textContent ?? '';
    const box = element.getBoundingClientRect();
    const isInView = box.width > 0 && box.bottom > 0 && box.top < innerHeight;
    // A list marks the row that the keys are at.
    const row = document.getElementById(element.getAttribute('aria-activedescendant') ?? '');
    const isMarked = [
      row,
      element,
      element.parentElement,
      element.parentElement?.parentElement,
    ].some((each) => {
      if (!each) return false;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
      const hasOutline = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0;
      return hasOutline || boxShadow !== 'none';
    });
    const isPage = element === document.body;
    return { name: isPage ? '' : name.trim(), isSeen: isInView && isMarked, isPage };
  });

/** Walks with the Tab key. */
function walker(page: Page) {
  const unseen = new Set<string>();
  return {
    /** Stops where the focus could not be seen. */
    unseen,
    /** Presses Tab, or Shift and Tab, until the focus is on something of this name. */
    async to(name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
      const passed: string[] = [];
      for (let step = 0; step < 80; step++) {
        await page.keyboard.press(key);
        const now = await focused(page);
        if (!now.isSeen && !now.isPage) unseen.add(now.name);
        if (name.test(now.name)) return;
        passed.push(now.name);
      }
      throw new Error(`The keyboard does not reach ${name}. It passed: ${passed.join(' | ')}`);
    },
  };
}

describe.each(['SQLite', 'Postgres'] as const)('with %s', (kind) => {
  let studio: Studio;
  let opened: TestStore;
  beforeAll(async () => {
    opened = await stores[kind]();
    studio = await openStudio(createStudioApp({ store: opened.store }));
  });
  afterAll(async () => {
    await studio?.[Symbol.asyncDispose]();
    await opened?.remove();
  });

  test('send, approve, restore, branch, compare and search, by keyboard alone', async () => {
    const { page, errors } = await studio.open('agents/trip-planner');
    const hands = handsOn(page);
    const walk = walker(page);
    const { keyboard } = page;
    const say = async (text: string): Promise<void> => {
      await keyboard.type(text);
      await keyboard.press('Enter');
    };
    await hands.field.waitFor();

    // The first stop of the page leads to the message field.
    await walk.to(/^Skip to the message field$/);
    await keyboard.press('Enter');
    await say('Two days in Lisbon');
    await hands.settled('Two days in Lisbon');
    await say('Book a small hotel');
    await page.getByRole('group', { name: 'book needs your approval' }).waitFor();
    await walk.to(/^Approve/, 'Shift+Tab');
    await keyboard.press('Enter');
    await hands.settled('Answered book');

    // Restore: the timeline is one stop, its rows are walked with the arrows.
    await walk.to(/^Timeline$/, 'Shift+Tab');
    await keyboard.press('ArrowUp');
    await keyboard.press('ArrowUp');
    await hands.pastBar.getByText('Turn 1 of 3').waitFor();
    await walk.to(/^Restore$/);
    await keyboard.press('Enter');
    await hands.row(/Two days in Lisbon.*head/).waitFor();
    // The button is gone; the focus is back in the timeline.
    await expect.poll(async () => (await focused(page)).name).toBe('Timeline');
    await walk.to(/^Message$/);
    await say('I like music');
    await hands.settled('I like music');

    // Compare with the other branch.
    await walk.to(/^Timeline$/, 'Shift+Tab');
    await keyboard.press('ArrowUp');
    await hands.pastBar.waitFor();
    await walk.to(/^Compare with now$/);
    await keyboard.press('Enter');
    await hands.comparison.waitFor();
    await soon(() => hands.comparison.textContent()).toContain('I like music');
    await keyboard.press('Escape');
    await hands.comparison.waitFor({ state: 'detached' });

    // Fork, into a new session.
    await expect.poll(async () => (await focused(page)).name).toBe('Timeline');
    await keyboard.press('ArrowUp');
    await hands.pastBar.waitFor();
    await walk.to(/^Fork$/);
    await keyboard.press('Enter');
    await page.getByText('into a new session.').waitFor();
    await hands.row(/head/).waitFor();

    // Search finds the first session by its text.
    await keyboard.press('Escape');
    await keyboard.press('/');
    await keyboard.type('music');
    const found = page.getByRole('navigation', { name: 'Sessions' }).getByRole('listitem');
    await soon(() => found.count()).toBe(1);
    await walk.to(/^Two days in Lisbon\d/);
    await keyboard.press('Enter');
    await hands.row(/I like music.*head/).waitFor();

    // What waits in other sessions.
    await walk.to(/^Inbox/, 'Shift+Tab');
    await keyboard.press('Enter');
    await page.getByRole('main', { name: 'Inbox' }).waitFor();
    expect([...walk.unseen]).toEqual([]);
    expect(errors).toEqual([]);
  });
});
