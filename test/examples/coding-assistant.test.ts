import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { replay, scriptedModelFrom } from 'waymark/replay';
import 'waymark/replay/vitest';
import { type Assistant, defineAssistant } from '../../examples/coding-assistant/assistant.ts';
import { fileTracker } from '../../examples/coding-assistant/tracker.ts';

const example = new URL('../../examples/coding-assistant/', import.meta.url);
const recorded = new URL('recorded.jsonl', example);
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-assistant-'));
  await cp(new URL('sample', example), join(folder, 'project'), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function open() {
  const app = waymark({ store: memoryStore() });
  const tracker = fileTracker(join(folder, 'issues.json'));
  const assistant = defineAssistant(app, { project: join(folder, 'project'), tracker });
  return { app, assistant, tracker };
}

const source = (project = 'project') => readFile(join(folder, project, 'src/slug.ts'), 'utf8');

// #region approve
/** Runs a turn, and approves each command that it asks for. */
async function runApproved(assistant: Assistant, text: string, options = {}) {
  const commands: unknown[] = [];
  let output = await assistant.run(text, options);
  while (output.interrupts.length > 0) {
    commands.push(...output.interrupts.map(({ input }) => input));
    output = await assistant.resume(output, (request) => request.approve(), options);
  }
  return { output, commands };
}
// #endregion

test('it makes the tests of the sample pass, with a skill and approved commands', async () => {
  const { app, assistant } = open();
  await app.ready();
  const { output, commands } = await runApproved(assistant, 'Make the tests pass');
  expect(commands).toEqual([{ command: 'node --test' }, { command: 'node --test' }]);
  expect(output.text).toMatch(/^All tests pass now/);
  expect(await source()).toContain('match(');
  const { items } = await assistant.listSnapshots(output.sessionId);
  const first = items.find(({ turnIndex }) => turnIndex === 0);
  const { skills, files } = await assistant.diff(first?.snapshotId ?? '', output);
  expect(skills).toBeUndefined(); // The first turn ended with the question, after it had loaded the skill.
  expect(files?.map(({ path, change }) => [path, change])).toEqual([['src/slug.ts', 'changed']]);
  await app.close();
});

test('a declined command is not run, and the model says so', async () => {
  const { app, assistant } = open();
  const asked = await assistant.run('Make the tests pass');
  const declined = await assistant.resume(asked, (request) => request.decline('Not now'));
  expect(declined.text).toMatch(/^I have stopped: .*Not now/);
  expect(await source()).toContain('replaceAll');
  await app.close();
});

test('a restore brings back the conversation and the files, and the branch stays', async () => {
  const { app, assistant } = open();
  const start = await assistant.run('Hello');
  const { sessionId } = start;
  const { output: fixed } = await runApproved(assistant, 'Make the tests pass', { sessionId });
  // #region restore
  await assistant.restore(start); // conversation and files
  // #endregion
  expect(await source()).toContain('replaceAll');
  expect((await assistant.getSession(sessionId))?.state?.messages).toHaveLength(2);
  await assistant.restore(fixed);
  expect(await source()).toContain('match(');
  await app.close();
});

test('a restore with undo closes the issue that was opened', async () => {
  const { app, assistant, tracker } = open();
  const start = await assistant.run('Hello');
  const { sessionId } = start;
  const opened = await assistant.run('Open an issue for accents', { sessionId });
  expect(opened.text).toBe('I have opened issue 1.');
  expect(await tracker.list()).toMatchObject([{ title: 'Support accents', state: 'open' }]);
  // #region undo
  const plan = await assistant.planUndo(start);
  expect(plan.effects.map(({ tool, undo }) => [tool, undo])).toEqual([['open_issue', 'possible']]);
  await assistant.restore(start, { undo: plan }); // closes the issue
  // #endregion
  expect(await tracker.list()).toMatchObject([{ title: 'Support accents', state: 'closed' }]);
  await app.close();
});

test('an editor chooses the folder', async () => {
  await cp(join(folder, 'project'), join(folder, 'other'), { recursive: true });
  const { app, assistant } = open();
  const context = { cwd: join(folder, 'other') };
  const { output } = await runApproved(assistant, 'Make the tests pass', { context });
  expect(output.text).toMatch(/^All tests pass now/);
  expect(await source('other')).toContain('match(');
  expect(await source()).toContain('replaceAll');
  await app.close();
});

// #region regression
test('recorded sessions have the same tool calls, files and answers', async () => {
  const { app } = open();
  const report = await replay(app, {
    sessions: [recorded.pathname],
    with: (session) => ({ model: scriptedModelFrom(session) }),
    tools: { '*': 'live', shell: 'recorded', open_issue: 'recorded' }, // commands are not run again
  });
  expect(report.turns.length).toBe(4);
  expect(report).toMatchRecording();
  await app.close();
});
// #endregion
