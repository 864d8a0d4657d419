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
  folder = await mkdtemp(join(tmpdir(), 'waymark-failures-'));
  studio = await openStudio(createApp(), { studioData: join(folder, 'studio') });
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function createApp(): App {
  const app = waymark({ store: sqliteStore(join(folder, 'sessions.db')) });
  const pay = app.defineTool(
    {
      name: 'pay',
      description: 'Pays.',
      input: z.object({ amount: z.number() }),
      output: z.object({ paid: z.boolean() }),
    },
    (_, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ question: 'Pay 5 euros?' });
      return { paid: true };
    },
  );
  const broken = app.defineTool(
    { name: 'broken', description: 'Throws.', input: z.object({}) },
    () => {
      throw new RangeError('The disk is full.');
    },
  );
  app.defineAgent({
    name: 'clerk',
    model: scriptedModel(
      {
        patterns: [
          [/^fail/, { chunks: ['half an answer '], error: new Error('The provider is down.') }],
          [/^pay/, { toolCalls: [{ name: 'pay', input: { amount: 5 } }] }],
          [/^break/, { toolCalls: [{ name: 'broken', input: {} }] }],
        ],
        afterTools: () => 'Noted.',
        otherwise: 'Good.',
      },
      { name: 'script' },
    ),
    tools: [pay, broken],
  });
  return app;
}

test('a session whose first turn failed shows what was asked and why it failed', async () => {
  const clerk = studio.app.agent('clerk');
  await expect(clerk.runText('fail at once')).rejects.toThrow();
  const { items } = await clerk.listSessions();
  const { page, errors } = await studio.open(`agents/clerk/${items[0]?.sessionId}`);
  const hands = handsOn(page);
  const failed = page.getByRole('region', { name: 'Failed turn' });
  await soon(() => failed.textContent()).toContain('fail at once');
  expect(await failed.textContent()).toContain('half an answer');
  await soon(() => failed.getByRole('alert').textContent()).toMatch(
    /Error: The provider is down\.\n {4}at /,
  );
  expect(await page.getByText('Write a message below.').count()).toBe(0);
  expect(await findBarriers(page)).toEqual([]);
  await failed.getByRole('button', { name: 'Try again' }).click();
  await soon(() => hands.row(/failed/).count()).toBe(2);
  // The session continues as if nothing had happened.
  await hands.say('hello');
  expect(await hands.messages.textContent()).toContain('Good.');
  expect(await failed.count()).toBe(0);
  expect(errors).toEqual([]);
});

test('a message sent from a failed snapshot continues from the last good one', async () => {
  const { page, errors } = await studio.open('agents/clerk');
  const hands = handsOn(page);
  await hands.say('one');
  await hands.send('fail now');
  // The inspector shows the turn that failed, not the one before it.
  await hands.tab('State');
  await soon(() => hands.inspector.textContent()).toMatch(/Statusfailed.*The provider is down/);
  await hands.row(/failed/).click();
  await hands.pastBar.waitFor();
  const alert = hands.messages.getByRole('alert');
  await soon(() => alert.textContent()).toContain('The provider is down.');
  expect(await hands.messages.textContent()).toContain('fail now');
  await hands.say('two');
  expect(await hands.messages.textContent()).toContain('one');
  expect(await hands.messages.textContent()).not.toContain('fail now');
  // A message sent from an older snapshot branches there.
  await hands.row(/one/).click();
  await hands.pastBar.waitFor();
  await hands.say('another two');
  await soon(() => hands.messages.textContent()).not.toContain('You two');
  expect(await hands.rows.count()).toBe(4);
  expect(errors).toEqual([]);
});

test('a declined request reads declined, and a failed tool shows its stack', async () => {
  const { page, errors } = await studio.open('agents/clerk');
  const hands = handsOn(page);
  await hands.send('pay it');
  await page.getByRole('textbox', { name: 'Reason for declining' }).fill('too much');
  await page.getByRole('button', { name: 'Decline' }).click();
  await soon(() => hands.messages.textContent()).toContain('Noted.');
  const call = hands.messages.locator('details', { hasText: 'pay' }).first();
  expect(await call.locator('summary').first().textContent()).toContain('declined');
  await call.locator('summary').first().click();
  expect(await call.textContent()).toContain('The reason: too much');

  await hands.say('break it');
  const broken = hands.messages.locator('details', { hasText: 'broken' });
  await broken.locator('summary').first().click();
  await soon(() => broken.textContent()).toMatch(/RangeError: The disk is full\.\n {4}at /);
  expect(errors).toEqual([]);
});

test('what is written survives a reload, and what the server does not take comes back', async () => {
  const { page } = await studio.open('agents/clerk');
  const hands = handsOn(page);
  await hands.field.fill('not sent yet');
  await page.reload();
  expect(await hands.field.inputValue()).toBe('not sent yet');
  await page.route('**/agents/clerk**', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({
          status: 429,
          json: { error: { status: 'RESOURCE_EXHAUSTED', message: 'Too many turns.' } },
        })
      : route.continue(),
  );
  await hands.send('is it lost?');
  await soon(() => hands.field.inputValue()).toBe('is it lost?');
  await page.unroute('**/agents/clerk**');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await hands.settled('is it lost');
  expect(await hands.field.inputValue()).toBe('');
});

test('what the server took does not come back when the stream is cut', async () => {
  const { page } = await studio.open('agents/clerk');
  const hands = handsOn(page);
  const lost = { status: 'ABORTED', message: 'The line was cut.' };
  await page.route('**/agents/clerk/turns', async (route) => {
    const response = await route.fetch();
    const [start] = (await response.text()).split('\n\n');
    expect(start).toContain('turnStart');
    const body = `${start}\n\nevent: error\ndata: ${JSON.stringify(lost)}\n\n`;
    await route.fulfill({ response, body });
  });
  await hands.send('is it twice?');
  await hands.settled('is it twice');
  expect(await hands.field.inputValue()).toBe('');
});

test('what could not be sent from an older snapshot comes back, also after a failed turn', async () => {
  const clerk = studio.app.agent('clerk');
  const { sessionId } = await clerk.runText('one');
  await clerk.runText('two', { sessionId });
  const { page } = await studio.open('runs');
  const hands = handsOn(page);
  // The page can read the head only.
  await page.route('**/agents/clerk/snapshots/**', (route) =>
    route.fulfill({ status: 404, json: { error: { status: 'NOT_FOUND', message: 'Gone.' } } }),
  );
  await page.goto(`${studio.url}/studio/#/agents/clerk/${sessionId}`);
  await hands.row(/two.*head/).waitFor();
  await hands.send('fail now');
  await hands.row(/failed/).waitFor();
  await hands.row(/one/).click();
  await soon(async () => page.url()).toMatch(/clerk\/[^/]+\/[^/]+$/);
  await hands.send('is it lost?');
  await soon(() => hands.field.inputValue()).toBe('is it lost?');
  expect((await clerk.listSnapshots(sessionId, { includeOrphaned: true })).items).toHaveLength(3);
});
