import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type App, toolApproval, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

/** An owner whose name no header could carry as it is. */
const zoe = 'zoë & 会社';

let folder: string;
let studio: Studio;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-owners-'));
  const app = defineDesk(waymark({ store: sqliteStore(join(folder, 'sessions.db')) }));
  studio = await openStudio(app);
  const desk = app.agent('desk');
  await desk.runText('A note of mine');
  await desk.runText('Hello from Ann', { owner: 'ann', sessionId: 'anns' });
  await desk.runText('pay for Ann', { owner: 'ann', sessionId: 'anns-payment' });
  await desk.runText('Hello from Zoë', { owner: zoe, sessionId: 'zoes' });
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function defineDesk(app: App): App {
  const pay = app.defineTool({ name: 'pay', description: 'Pays.' }, () => 'paid');
  const model = scriptedModel(
    {
      patterns: [[/^pay/, { toolCalls: [{ name: 'pay', input: {} }] }]],
      afterTools: () => 'Done.',
      otherwise: 'ok',
    },
    { name: 'script' },
  );
  app.defineAgent({ name: 'desk', model, tools: [pay], use: [toolApproval(['pay'])] });
  return app;
}

test('S564 sessions are shown by owner: their list, search, conversation and new turns', async () => {
  const { page, errors } = await studio.open('agents/desk');
  const hands = handsOn(page);
  const list = page.getByRole('navigation', { name: 'Sessions' });
  const titles = () => list.getByRole('listitem').locator('.session-name').allTextContents();
  await soon(titles).toEqual(['A note of mine']);
  const owner = page.getByLabel('Owner');
  expect(await owner.getByRole('option').allTextContents()).toEqual(['No owner', 'ann', zoe]);
  expect(await findBarriers(page)).toEqual([]);

  await owner.selectOption('ann');
  await soon(titles).toEqual(['pay for Ann', 'Hello from Ann']);
  await list.getByRole('searchbox').fill('Hello');
  await soon(titles).toEqual(['Hello from Ann']);
  await list.getByRole('link', { name: 'Hello from Ann' }).click();
  await soon(() => hands.messages.textContent()).toContain('Hello from Ann');
  await hands.say('And again');
  const anns = await studio.app.agent('desk').getSession('anns', { owner: 'ann' });
  expect(anns?.turnCount).toBe(2);
  // The address has the owner, so that a reload and a link lead to the same place.
  await page.reload();
  await soon(() => hands.messages.textContent()).toContain('And again');
  await hands.tab('Trace');
  await hands.inspector.getByRole('button', { name: /^model / }).click();
  await page.getByRole('region', { name: /^Model call/ }).waitFor();

  // Runs again as Ann, too.
  await hands.messages.getByRole('button', { name: 'Run again with…: turn 2' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Run and compare' }).click();
  await hands.comparison.waitFor();
  await list.getByRole('searchbox').fill('');
  await soon(async () => (await titles()).toSorted()).toContain('Hello from Ann (replay)');

  await owner.selectOption(zoe);
  await soon(titles).toEqual(['Hello from Zoë']);
  await owner.selectOption('No owner');
  await soon(titles).toEqual(['A note of mine']);
  expect(errors).toEqual([]);
});

test('S564 the inbox and the runs are those of the owner; traces list all turns and lead to their owner', async () => {
  const { page, errors } = await studio.open('inbox');
  await page.getByText('Nothing is waiting for you.').waitFor();
  await page.goto(`${studio.url}/studio/#/inbox?owner=ann`);
  await page.getByRole('link', { name: 'pay for Ann' }).waitFor();
  await page.getByText('Owner: ann').waitFor();
  await page.goto(`${studio.url}/studio/#/traces`);
  const row = page.getByRole('row').filter({ hasText: 'Hello from Zoë' });
  await soon(() => row.textContent()).toContain(zoe);
  await row.getByRole('link').click();
  await soon(() => handsOn(page).messages.textContent()).toContain('Hello from Zoë');
  await soon(() => page.getByLabel('Owner').inputValue()).toBe(zoe);
  expect(errors).toEqual([]);
});

test('S564 only a server without auth takes the owner from Studio', async () => {
  const headers = { 'x-waymark-owner': 'ann' };
  const idsAt = async (url: string): Promise<readonly string[]> => {
    const response = await fetch(`${url}/agents/desk/sessions`, { headers });
    const { items } = await response.json();
    return items.map(({ sessionId }: { sessionId: string }) => sessionId);
  };
  expect(await idsAt(studio.url)).toEqual(expect.arrayContaining(['anns', 'anns-payment']));
  const wrong = await fetch(`${studio.url}/agents/desk/sessions`, {
    headers: { 'x-waymark-owner': '%' },
  });
  expect(wrong.status).toBe(400);
  const open = { port: 0, log: () => {} };
  const others = [
    await serve(studio.app, {
      ...open,
      studio: inject('studio'),
      auth: () => ({ principal: 'bob' }),
    }),
    await serve(studio.app, open),
  ];
  try {
    const [withAuth, withoutStudio] = others.map(({ url }) => url);
    expect(await idsAt(withAuth ?? '')).toEqual([]);
    expect((await fetch(`${withAuth}/studio/owners`)).status).toBe(404);
    expect(await idsAt(withoutStudio ?? '')).toHaveLength(1);
  } finally {
    for (const server of others) await server.close();
  }
});
