import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryStore, tool, waymark } from 'waymark';
import { replay, scriptedModelFrom } from 'waymark/replay';
import 'waymark/replay/vitest';
import { z } from 'zod';
import { defineAssistant } from '../../examples/coding-assistant/assistant.ts';
import { showChanges } from '../../examples/coding-assistant/show-changes.ts';
import { openWorkspace } from '../../examples/coding-assistant/workspace.ts';

const recorded = new URL('../../examples/coding-assistant/recorded.jsonl', import.meta.url);
const sample = "export const greeting = 'Hello.';\n";
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-assistant-'));
  await writeFile(join(folder, 'greet.js'), sample);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The assistant, with a tool in place of the MCP server; test/interop has the server itself. */
function open({ onRead = async () => {} }: { readonly onRead?: () => Promise<void> } = {}) {
  const app = waymark({ store: memoryStore() });
  const workspace = openWorkspace(folder);
  const readFileTool = tool(
    {
      name: 'files_read_text_file',
      description: 'Reads a file',
      input: z.object({ path: z.string() }),
    },
    async ({ path }) => {
      await onRead();
      return { content: await workspace.read(path) };
    },
  );
  const assistant = defineAssistant(app, { workspace, files: [readFileTool] });
  return { app, assistant, workspace };
}

test('edits are drafts, a branch can be compared, and only an approval writes the file', async () => {
  const { app, assistant } = open();
  const chat = assistant.chat();
  const warmer = await chat.send('Make the greeting warmer');
  const loud = await chat.send('End it with an exclamation mark');
  expect(await showChanges(assistant, warmer, loud)).toBe(
    [
      'greet.js (changed)',
      "- export const greeting = 'Good morning.';",
      "+ export const greeting = 'Good morning!';",
    ].join('\n'),
  );
  expect(await readFile(join(folder, 'greet.js'), 'utf8')).toBe(sample);

  const asked = await chat.send('Save it');
  expect(asked.interrupts).toMatchObject([{ toolName: 'save_file', input: { path: 'greet.js' } }]);
  await assistant.resume(asked, (request) => request.approve());
  expect(await readFile(join(folder, 'greet.js'), 'utf8')).toContain('Good morning!');

  // Back to the first draft: the branch is kept, and so are its drafts.
  await assistant.restore(warmer);
  const { sessionId } = warmer;
  const draft = (await assistant.getSession(sessionId))?.state?.artifacts?.[0];
  expect(JSON.stringify(draft)).toContain('Good morning.');
  await app.close();
});

test('a message that is sent while the turn runs is part of it', async () => {
  const reading = Promise.withResolvers<void>();
  const steered = Promise.withResolvers<void>();
  const { app, assistant } = open({
    onRead: () => {
      reading.resolve();
      return steered.promise;
    },
  });
  const turn = assistant.stream('Show me the greeting');
  await reading.promise;
  await turn.steer('End it with an exclamation mark');
  steered.resolve();
  const output = await turn.output;
  expect(output.finishReason).toBe('stop');
  const { state } = (await assistant.getSession(output.sessionId)) ?? {};
  expect(JSON.stringify(state?.artifacts)).toContain('Hello!');
  expect((await assistant.listSnapshots(output.sessionId)).items).toHaveLength(1);
  await app.close();
});

describe('the workspace', () => {
  test.each(['../outside.js', '/etc/hostname', 'link.js'])('refuses %s', async (path) => {
    await symlink('/etc/hostname', join(folder, 'link.js'));
    const workspace = openWorkspace(folder);
    await expect(workspace.read(path)).rejects.toThrow('outside of the workspace');
    await expect(workspace.write(path, 'x')).rejects.toThrow('outside of the workspace');
  });
});

// #region regression
test('recorded sessions have the same tool calls, drafts and answers', async () => {
  const { app } = open();
  const report = await replay(app, {
    sessions: [recorded.pathname],
    with: (session) => ({ model: scriptedModelFrom(session) }),
    tools: { edit_file: 'live' }, // our own code runs; files are answered from the recording
  });
  expect(report.turns.length).toBe(4);
  expect(report).toMatchRecording();
  await app.close();
});
// #endregion
