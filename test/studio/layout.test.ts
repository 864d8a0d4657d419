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

const small = { viewport: { width: 1280, height: 800 } };

async function widthOf(page: Page, selector: string): Promise<number> {
  return (await page.locator(selector).boundingBox())?.width ?? 0;
}

test('at 1280 pixels the conversation has room; columns are resized, put away and remembered', async () => {
  const { page, errors } = await studio.open('agents/trip-planner', small);
  const inspector = '[data-panel=inspector]';
  await page.locator(inspector).waitFor();
  expect(await widthOf(page, 'main')).toBeGreaterThan(500);

  const handle = page.getByRole('separator', { name: 'Width of inspector' });
  const before = await widthOf(page, inspector);
  const box = (await handle.boundingBox()) ?? { x: 0, y: 0 };
  await page.mouse.move(box.x + 3, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 3 - 60, box.y + 200);
  await page.mouse.up();
  await soon(() => widthOf(page, inspector)).toBe(before + 60);
  await handle.focus();
  await page.keyboard.press('ArrowRight');
  await soon(() => widthOf(page, inspector)).toBe(before + 44);

  await page.getByRole('button', { name: 'Show or hide: Sessions' }).click();
  await page.getByRole('button', { name: 'Show or hide: Timeline' }).click();
  await soon(() => widthOf(page, '[data-panel=timeline]')).toBe(0);
  await page.reload();
  await page.locator(inspector).waitFor();
  expect(await widthOf(page, inspector)).toBe(before + 44);
  expect(await widthOf(page, '[data-panel=sessions]')).toBe(0);
  expect(await widthOf(page, '[data-panel=timeline]')).toBe(0);
  await handle.dblclick();
  await soon(() => widthOf(page, inspector)).toBe(before);
  expect(errors).toEqual([]);
});

test('a column that was made wide leaves the conversation its room on a smaller screen', async () => {
  const { page } = await studio.open('agents/trip-planner', small);
  const handle = page.getByRole('separator', { name: 'Width of inspector' });
  await handle.focus();
  for (let n = 0; n < 40; n++) await page.keyboard.press('ArrowLeft');
  expect(await widthOf(page, 'main')).toBeGreaterThanOrEqual(400);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1280);
});

test('a notice does not cover the input field', async () => {
  const { page } = await studio.open('agents/trip-planner', small);
  const hands = handsOn(page);
  await hands.say('Two days in Lisbon');
  await hands.press('r');
  const notice = await page.locator('.toast').boundingBox();
  const composer = await page.locator('.composer').boundingBox();
  expect((notice?.y ?? 0) + (notice?.height ?? 0)).toBeLessThan(composer?.y ?? 0);
});

test('a running turn offers neither Fork nor Label; turns count from one', async () => {
  const { page } = await studio.open('agents/trouble', small);
  const hands = handsOn(page);
  await hands.say('rtl');
  expect(await page.getByRole('button', { name: 'Fork turn 1' }).count()).toBe(1);
  await hands.send('hang on');
  await soon(() => hands.messages.textContent()).toContain('half an answer');
  expect(await page.getByRole('button', { name: /^(Fork|Label) turn 2/ }).count()).toBe(0);
  await page.keyboard.press('Escape');
});
