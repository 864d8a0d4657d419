import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;

beforeAll(async () => {
  studio = await openStudio();
});
afterAll(() => studio?.[Symbol.asyncDispose]());

/** What has the focus, by its label. */
const focused = (page: Page): Promise<string | null | undefined> =>
  page.evaluate(() => document.activeElement?.getAttribute('aria-label'));

test.each([1440, 380])(
  'the key after / is already typed in the search, %i px wide',
  async (width) => {
    const { page, errors } = await studio.open('agents/story', {
      viewport: { width, height: 800 },
    });
    await handsOn(page).field.waitFor();
    // No frame comes between the two keys of somebody quick, or of a busy machine.
    const reached = await page.evaluate(() => {
      const press = new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true });
      document.body.dispatchEvent(press);
      return document.activeElement?.getAttribute('aria-label');
    });
    expect(reached).toBe('Search sessions');
    await page.keyboard.type('hg');
    expect(await page.getByRole('searchbox').inputValue()).toBe('hg');
    expect(errors).toEqual([]);
  },
);

test('the end of a turn leaves the focus where it is', async () => {
  const { page, errors } = await studio.open('agents/story');
  const hands = handsOn(page);
  await hands.send('Look around');
  expect(await focused(page)).toBe('Message');
  await page.getByRole('searchbox').focus();
  await page.keyboard.type('Loo');
  await hands.settled('Look around');
  await page.keyboard.type('k');
  expect(await focused(page)).toBe('Search sessions');
  expect(await page.getByRole('searchbox').inputValue()).toBe('Look');
  expect(errors).toEqual([]);
});

test('what others do in the session does not close what one writes in', async () => {
  const { page, errors } = await studio.open('agents/story');
  const hands = handsOn(page);
  await hands.say('Look around');
  await hands.messages.getByRole('button', { name: 'Edit and resend: Look around' }).click();
  await page.keyboard.type(', but ');
  const sessionId = /story\/([^/]+)/.exec(page.url())?.[1] ?? '';
  await studio.app.agent('story').runText('To the pond', { sessionId });
  await hands.row(/To the pond.*head/).waitFor();
  await page.keyboard.type('slowly');
  expect(await focused(page)).toBe('Edit message');
  await page.keyboard.press('Enter');
  await hands.settled('Look around, but slowly');
  expect(errors).toEqual([]);
});

test('a form that is being filled in outlives the server', async () => {
  const { page } = await studio.open('agents/trouble');
  const hands = handsOn(page);
  await hands.send('ask me');
  await page.getByLabel('Note').fill('half a ');
  await studio.stopServer();
  await page.getByRole('alert').waitFor();
  await page.keyboard.type('tho');
  await studio.startServer();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await soon(() => page.getByRole('button', { name: 'Send the answer' }).isEnabled()).toBe(true);
  await page.keyboard.type('ught');
  await page.getByLabel('Colour').selectOption('green');
  await page.getByLabel('Amount').fill('3');
  await page.getByRole('button', { name: 'Send the answer' }).click();
  await hands.settled('Answered ask');
  expect(await hands.messages.textContent()).toContain('half a thought');
});
