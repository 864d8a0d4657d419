import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { waymark } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { command, tempFolder } from './support/command.ts';

const folder = tempFolder();
const run = (...args: string[]) =>
  command(folder.path, ['memory', ...args, '--store', 'sqlite:memory.db']);
const owner = { owner: 'ada' };
let snapshotId = '';
let sessionId = '';

beforeAll(async () => {
  const store = sqliteStore(join(folder.path, 'memory.db'));
  const model = scriptedModel([
    { toolCalls: [{ name: 'remember', input: { text: 'Prefers tea' } }] },
    'Noted.',
  ]);
  const app = waymark({ model, store });
  const facts = app.defineMemory({ name: 'facts', schema: z.object({ text: z.string() }) });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  const turn = await assistant.run('I prefer tea.', owner);
  ({ sessionId, snapshotId = '' } = turn);
  await facts.add({ text: 'Works in Lisbon' }, owner);
  await app.close();
});
afterAll(() => folder.remove());

test('S814 shows entries with their sources, also as of a snapshot and by their words', async () => {
  const shown = await run('facts', '--owner', 'ada');
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ID +SAVED +SOURCE/) });
  expect(shown.stdout).toContain('Works in Lisbon');
  expect(shown.stdout).toContain(`assistant/${sessionId}`);
  const before = await run('facts', '--owner', 'ada', '--as-of', snapshotId, '--json');
  expect(JSON.parse(before.stdout).items).toMatchObject([
    { value: { text: 'Prefers tea' }, source: { sessionId, snapshotId } },
  ]);
  const found = await run('facts', '--owner', 'ada', '--search', 'lisbon', '--json');
  expect(JSON.parse(found.stdout).items).toMatchObject([{ value: { text: 'Works in Lisbon' } }]);
  const nobody = await run('facts', '--owner', 'bob');
  expect(nobody).toMatchObject({ code: 0, stdout: '' });
  expect((await run('facts')).code).toBe(2);
  expect((await run('--owner', 'ada')).code).toBe(2);
  expect((await run('facts', '--scope', 'world')).code).toBe(2);
});

test('S819 deletes an entry with all its versions', async () => {
  const listed = await run('facts', '--owner', 'ada', '--search', 'tea', '--json');
  const [{ id }] = JSON.parse(listed.stdout).items;
  const forget = ['facts', '--owner', 'ada', '--forget', id];
  expect((await run(...forget)).code).toBe(2);
  expect((await run(...forget, '--dry-run')).code).toBe(0);
  const done = await run(...forget, '--yes');
  expect(done).toMatchObject({ code: 0, stdout: 'Deleted the entry.\n' });
  const left = await run('facts', '--owner', 'ada', '--json');
  expect(JSON.parse(left.stdout).items).toMatchObject([{ value: { text: 'Works in Lisbon' } }]);
});
