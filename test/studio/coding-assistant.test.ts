/** The coding assistant of the examples in Studio: its skill, its approvals, a restore of files and an undo. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { defineAssistant } from '../../examples/coding-assistant/assistant.ts';
import { fileTracker, type Tracker } from '../../examples/coding-assistant/tracker.ts';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;
let folder: string;
let tracker: Tracker;
const sample = fileURLToPath(new URL('../../examples/coding-assistant/sample', import.meta.url));
const source = (): string => readFileSync(join(folder, 'project/src/slug.ts'), 'utf8');

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-studio-assistant-'));
  cpSync(sample, join(folder, 'project'), { recursive: true });
  tracker = fileTracker(join(folder, 'issues.json'));
  const app = waymark({ store: memoryStore() });
  defineAssistant(app, { project: join(folder, 'project'), tracker });
  studio = await openStudio(app);
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test('S839 shows its skills, the version that was loaded, and what a restore undoes', async () => {
  const { page, errors } = await studio.open('agents/assistant', { colorScheme: 'dark' });
  const hands = handsOn(page);
  await soon(() => page.getByRole('main').textContent()).toContain('Skills: fix-tests');
  await hands.send('Make the tests pass');
  for (const turn of [1, 2]) {
    await page.getByRole('button', { name: 'Approve' }).click();
    await soon(() => hands.rows.count()).toBe(turn + 1);
  }
  await soon(() => hands.messages.textContent()).toContain('All tests pass now');
  expect(source()).toContain('match(');
  await hands.tab('State');
  const loaded = page.getByRole('list', { name: 'Loaded skills' });
  await soon(() => loaded.textContent()).toMatch(/^\s*fix-tests[0-9a-f]{8}$/);
  expect(await findBarriers(page)).toEqual([]);

  await hands.say('Open an issue for accents');
  expect(await tracker.list()).toMatchObject([{ state: 'open' }]);
  await hands.row(/^.*Make the tests pass/).click();
  await hands.pastBar.getByRole('button', { name: /^Restore/ }).click();
  const dialog = page.getByRole('dialog', { name: /^Restore turn 1/ });
  await soon(() => dialog.textContent()).toContain('Support accents');
  await dialog.getByRole('button', { name: 'Undo 1 effect and restore' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await tracker.list()).toMatchObject([{ state: 'closed' }]);
  expect(source()).toContain('replaceAll');
  expect(errors).toEqual([]);
});
