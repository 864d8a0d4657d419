import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { mcp } from 'waymark/mcp';
import { defineAssistant } from '../../examples/coding-assistant/assistant.ts';
import { openWorkspace } from '../../examples/coding-assistant/workspace.ts';
import { scriptOf } from './mcp-servers.ts';

test('the coding assistant reads through server-filesystem, edits a draft and saves it after an approval', async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'waymark-assistant-')));
  await writeFile(join(folder, 'greet.js'), "export const greeting = 'Hello.';\n");
  const app = waymark({ store: memoryStore() });
  const files = mcp('files', {
    command: process.execPath,
    args: [scriptOf('server-filesystem'), folder],
    cwd: folder,
  });
  const assistant = defineAssistant(app, {
    workspace: openWorkspace(folder),
    files: [files.only('read_text_file', 'list_directory', 'search_files')],
  });
  await app.ready();
  const chat = assistant.chat();
  const warmer = await chat.send('Make the greeting warmer');
  expect(warmer.text).toBe('I have changed the draft of greet.js.');
  const asked = await chat.send('Save it');
  await assistant.resume(asked, (request) => request.approve());
  expect(await readFile(join(folder, 'greet.js'), 'utf8')).toContain('Good morning');
  await app.close();
  await rm(folder, { recursive: true, force: true });
});
