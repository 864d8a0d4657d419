import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { openStudio, type Studio } from './support/studio.ts';

const { SCREENSHOTS: out } = process.env;
const remember = (text: string, topic: string) => ({
  toolCalls: [{ name: 'remember', input: { text, topic } }],
});
const model = scriptedModel({
  patterns: [
    [/tea/, () => remember('Prefers green tea, without sugar', 'drinks')],
    [/dog/, () => remember('Has a dog named Nemo', 'family')],
  ],
  afterTools: () => 'I will remember that.',
  otherwise: 'Green tea for you, and water for Nemo.',
});
const app = waymark({ model, store: memoryStore() });
const schema = z.object({ text: z.string(), topic: z.string().optional() });
const facts = app.defineMemory({ name: 'facts', schema });
app.defineAgent({ name: 'assistant', memory: facts });
let studio: Studio;
let last: { readonly sessionId: string; readonly snapshotId?: string | undefined };
const ada = { owner: 'ada' };

beforeAll(async () => {
  const agent = app.agent('assistant');
  await agent.run('I like tea', ada);
  await agent.run('I have a dog', ada);
  await facts.add({ text: 'Lives in Lisbon' }, ada);
  last = await agent.run('What shall I get at the café?', ada);
  studio = await openStudio(app);
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
});

test('the page Memory lists, finds, changes and deletes entries, and leads to their sources', async () => {
  const { page, errors } = await studio.open('memory?owner=ada');
  const entries = page.getByRole('list', { name: 'Entries' }).getByRole('listitem');
  await entries.filter({ hasText: 'Lives in Lisbon' }).waitFor();
  expect(await entries.count()).toBe(3);
  const barriers: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    barriers.push(
      ...(await findBarriers(page, colorScheme === 'light' ? 'everything' : 'contrast')),
    );
    if (out !== undefined) {
      await page.screenshot({ path: join(out, `memory-${colorScheme}.png`) });
    }
  }
  expect(barriers).toEqual([]);
  await page.getByRole('searchbox', { name: 'Search memory' }).fill('tea');
  await expect.poll(() => entries.count()).toBe(1);
  const tea = entries.filter({ hasText: 'green tea' });
  await tea.getByRole('button', { name: 'Edit' }).click();
  await tea.or(entries).first().getByRole('textbox').fill('{ "text": "Prefers black tea" }');
  await entries.first().getByRole('button', { name: 'Save' }).click();
  await entries.filter({ hasText: 'Prefers black tea' }).waitFor();
  await entries.first().getByRole('button', { name: 'Versions' }).click();
  await page.getByRole('list', { name: 'Versions' }).getByText('green tea').waitFor();
  await entries.first().getByRole('button', { name: 'Forget' }).click();
  await entries.first().getByRole('button', { name: 'Delete permanently' }).click();
  await page.getByText('Nothing fits these words.').waitFor();
  expect((await facts.list(ada)).items).toHaveLength(2);
  await page.getByRole('searchbox', { name: 'Search memory' }).fill('dog');
  await entries.getByRole('link', { name: /assistant/ }).click();
  await expect.poll(() => page.url()).toContain('agents/assistant');
  expect(errors).toEqual([]);
  await page.context().close();
});

test('the inspector shows what a turn knew and learned', async () => {
  const { page, errors } = await studio.open(
    `agents/assistant/${last.sessionId}/${last.snapshotId}?owner=ada`,
  );
  const hands = handsOn(page);
  await hands.tab('Memory');
  await hands.inspector.getByText('Lives in Lisbon').waitFor();
  await hands.inspector.getByText('Has a dog named Nemo').waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    if (out !== undefined) {
      await page.screenshot({ path: join(out, `knew-${colorScheme}.png`) });
    }
  }
  expect(errors).toEqual([]);
  await page.context().close();
});
