import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { rawServer } from '../mcp/support/raw.ts';
import { findBarriers } from './support/axe.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;
const calls: string[] = [];
let release = (): void => {};

beforeAll(async () => {
  const app = waymark({ store: memoryStore(), model: scriptedModel([]), onError: () => {} });
  const state = z.object({ likes: z.array(z.string()) });
  const like = app.defineTool(
    {
      name: 'like',
      description: 'Notes a taste.',
      input: z.object({
        what: z.string().describe('A thing.'),
        often: z.number().int().optional(),
        mood: z.enum(['calm', 'loud']).default('calm'),
      }),
      state,
    },
    (input, { session }) => {
      calls.push(`like ${JSON.stringify(input)}`);
      session.updateCustom((draft) => void draft.likes.push(input.what));
      return { noted: input };
    },
  );
  const broken = app.defineTool({ name: 'broken', description: 'Always throws.' }, () => {
    throw new Error('The disk is full.', { cause: new TypeError('no space left') });
  });
  const slow = app.defineTool({ name: 'slow', description: 'Waits.' }, async (_, { signal }) => {
    calls.push('slow');
    signal.addEventListener('abort', () => calls.push('slow was stopped'));
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return 'done';
  });
  app.defineAgent({
    name: 'desk',
    system: 'Help.',
    state,
    initialState: { likes: ['tea'] },
    tools: [like, broken, slow, rawServer('files').only('echo'), rawServer('crm', 'exit')],
  });
  await app.ready();
  studio = await openStudio(app);
});
afterAll(() => studio?.[Symbol.asyncDispose]());

test('S550 S551 servers are listed with their state, and their tools run from a form', async () => {
  const { page, errors } = await studio.open();
  await page.getByRole('link', { name: 'Tools' }).click();
  const files = page.getByRole('listitem', { name: 'files' });
  await files.getByText('connected', { exact: true }).waitFor();
  const crm = page.getByRole('listitem', { name: 'crm' });
  await crm.getByText('failed', { exact: true }).waitFor();
  await crm.getByText('The secret key is missing.').first().waitFor();
  await files.getByText('destructive').waitFor();
  expect(await findBarriers(page)).toEqual([]);

  await files.getByRole('link', { name: 'files_echo' }).click();
  await files.getByLabel('Text').fill('hi');
  await files.getByRole('button', { name: 'Run files_echo' }).click();
  await files.getByText('echo hi').waitFor();

  await files.getByRole('link', { name: 'files_ask' }).click();
  await files.getByRole('button', { name: 'Run files_ask' }).click();
  await files.getByText('Your name?').waitFor();
  await files.getByLabel('Value').fill('Ada');
  await files.getByRole('button', { name: 'Send the answer' }).click();
  await files.getByText('Your age?').waitFor();
  await files.getByRole('button', { name: 'Decline' }).click();
  await files.getByText('"action":"decline"').waitFor();
  expect(errors).toEqual([]);
});

test('S551 a tool of an agent runs once for each press, and not again by a reload', async () => {
  const { page, errors } = await studio.open('tools');
  const desk = page.getByRole('region', { name: 'Tools of desk' });
  await desk.getByRole('link', { name: 'like' }).click();
  await desk.getByLabel('What').fill('jazz');
  await desk.getByLabel('Often').fill('a lot');
  await desk.getByRole('button', { name: 'Run like' }).click();
  await desk.getByText('Often must be a whole number.').waitFor();
  await desk.getByLabel('Often').fill('2');
  await desk.getByRole('button', { name: 'Run like' }).click();
  const result = desk.getByRole('region', { name: 'Result of like' });
  await result.getByText('State after the call (not saved)').waitFor();
  expect(calls).toEqual(['like {"what":"jazz","often":2,"mood":"calm"}']);
  expect(await findBarriers(page)).toEqual([]);

  await page.reload();
  await desk.getByRole('button', { name: 'Run like' }).waitFor();
  expect(await desk.getByLabel('What').inputValue()).toBe('jazz');
  expect(await result.textContent()).toBe('');
  expect(calls).toHaveLength(1);
  expect(errors).toEqual([]);
});

test('S551 a failure is shown with its stack and cause, in both themes', async () => {
  const { page, errors } = await studio.open('tools/agent/desk/broken', { colorScheme: 'dark' });
  await page.getByRole('button', { name: 'Run broken' }).click();
  const result = page.getByRole('region', { name: 'Result of broken' });
  await result.getByText('The disk is full.', { exact: true }).waitFor();
  // First what went wrong and why, then where; the rest of the stack on request.
  const stack = result.getByRole('group', { name: 'Error with stack' });
  const short = await stack.textContent();
  expect(short).toMatch(
    /^.*The disk is full\.\nCaused by: TypeError: no space left\n {4}at .*tools\.test\.ts/,
  );
  await stack.getByRole('button', { name: /^Show \d+ more lines$/ }).click();
  const whole = await stack.textContent();
  expect(whole).toMatch(/The disk is full\.\n {4}at [\s\S]*\nCaused by: /);
  expect(whole?.length).toBeGreaterThan(short?.length ?? 0);
  expect(await findBarriers(page, 'contrast')).toEqual([]);
  const { page: narrow } = await studio.open('tools/agent/desk/broken', {
    viewport: { width: 380, height: 760 },
  });
  await narrow.getByRole('button', { name: 'Run broken' }).click();
  // Tool sources that failed show a stack, too.
  const failed = narrow.getByRole('region', { name: 'Result of broken' });
  await failed.getByRole('group', { name: 'Error with stack' }).waitFor();
  expect(await findBarriers(narrow)).toEqual([]);
  const width = await narrow.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(380);
  expect(errors).toEqual([]);
});

test('S551 a page that is reloaded while a tool runs stops it, and does not start it again', async () => {
  const { page } = await studio.open('tools/agent/desk/slow');
  const run = page.getByRole('button', { name: 'Run slow' });
  await run.click();
  await page.getByText('Running…').waitFor();
  await expect.poll(() => calls).toContain('slow');
  expect(await run.isDisabled()).toBe(true);
  await page.reload();
  await expect.poll(() => calls).toContain('slow was stopped');
  await run.waitFor();
  expect(calls.filter((call) => call === 'slow')).toHaveLength(1);
  release();
});
