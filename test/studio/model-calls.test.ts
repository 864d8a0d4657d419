import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let folder: string;
let studio: Studio;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-model-calls-'));
  studio = await openStudio(createApp(), { studioData: join(folder, 'studio') });
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** A planner whose tool answers in the wrong currency. */
function createApp(): App {
  const app = waymark({
    store: sqliteStore(join(folder, 'sessions.db')),
    price: () => ({ USD: 1_250 }),
  });
  const price = app.defineTool(
    {
      name: 'hotel-price',
      description: 'The price of a hotel, in euros.',
      input: z.object({ hotel: z.string() }),
    },
    () => ({ amount: 120, currency: 'USD' }),
  );
  app.defineAgent({
    name: 'planner',
    system: 'Plan a trip. The budget is 500 euros.',
    model: scriptedModel(
      {
        patterns: [
          [/hotel/, { toolCalls: [{ name: 'hotel-price', input: { hotel: 'Alfama' } }] }],
          [/break/, { error: new Error('The provider is down.') }],
        ],
        afterTools: () => 'It costs 120 euros.',
        otherwise: 'Where to?',
      },
      { name: 'script' },
    ),
    tools: [price],
    config: { temperature: 0.4 },
  });
  return app;
}

test('S480 a turn shows each model call: what was sent, what is new, what came back', async () => {
  const { page, errors } = await studio.open('agents/planner');
  const hands = handsOn(page);
  await hands.say('Hello');
  await hands.say('Find a hotel');
  await hands.tab('Trace');
  const calls = page.getByRole('button', { name: /^model script/ });
  await soon(() => calls.count()).toBe(2);
  await calls.nth(1).click();
  const call = page.getByRole('region', { name: 'Model call script' });
  await soon(() => call.textContent()).toContain('The budget is 500 euros.');
  const fresh = call.locator('[data-new]');
  // Of the second call of this turn, only the result of the tool is new, and it has the bug in it.
  await soon(() => fresh.count()).toBe(1);
  expect(await fresh.textContent()).toContain('result of hotel-price');
  expect(await fresh.textContent()).toContain('USD');
  expect(await call.textContent()).toContain('It costs 120 euros.');
  expect(await call.textContent()).toContain('$0.0013');
  expect(await call.textContent()).toMatch(/Finish reason\s*stop/);
  expect(await call.textContent()).toContain('First token');
  expect(await call.getByRole('group', { name: 'Settings' }).textContent()).toContain('0.4');
  await call.getByText('hotel-price', { exact: true }).last().click();
  expect(await call.textContent()).toContain('Input');
  await call.getByRole('button', { name: 'JSON', exact: true }).click();
  await soon(() => call.textContent()).toContain('"temperature": 0.4');
  await call.getByRole('button', { name: 'Code', exact: true }).click();
  await soon(() => call.textContent()).toContain('await app.generate({');
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole('button', { name: 'Open in full size' }).click();
  const dialog = page.getByRole('dialog', { name: 'Model call: script' });
  await dialog.waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findBarriers(page, 'contrast')).toEqual([]);
  expect(errors).toEqual([]);
});

test('S481 model calls are there after a restart of the server', async () => {
  const planner = studio.app.agent('planner');
  const { sessionId } = await planner.runText('Find a hotel in Porto');
  await studio.stopServer();
  await studio.startServer();
  const { page } = await studio.open(`agents/planner/${sessionId}`);
  const hands = handsOn(page);
  await soon(() => hands.messages.textContent()).toContain('It costs 120 euros.');
  await hands.tab('Trace');
  await page
    .getByRole('button', { name: /^model script/ })
    .first()
    .click();
  const call = page.getByRole('region', { name: 'Model call script' });
  await soon(() => call.textContent()).toContain('Find a hotel in Porto');
});
