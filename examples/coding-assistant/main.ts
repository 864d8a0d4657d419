import { cp, mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { waymark } from 'waymark';
import { mcp } from 'waymark/mcp';
import { sqliteStore } from 'waymark/sqlite';
import { chooseModel } from '../choose-model.ts';
import { defineAssistant } from './assistant.ts';
import { chatInTerminal } from './terminal.ts';
import { openWorkspace } from './workspace.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const folder = resolve(positionals[0] ?? (await sampleFolder()));
const { model, note } = await chooseModel();

console.log('Starting the file server. The first start downloads it …');

// #region app
const app = waymark({ store: sqliteStore('.waymark/coding-assistant.db') });
// The MCP project's file server, as a separate process. It reads only files in this folder.
const files = mcp('files', {
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-filesystem', folder],
  cwd: folder,
  connectTimeout: 180_000, // npx downloads it at the first start
});
const assistant = defineAssistant(app, {
  workspace: openWorkspace(folder),
  files: [files.only('read_text_file', 'list_directory', 'search_files')],
  model,
});
await app.ready();
// #endregion

console.log(`Editing ${folder} (${note}). /quit ends.`);
await chatInTerminal(assistant);
await app.close();

/** A copy of the sample, so that you can change it. */
async function sampleFolder(): Promise<string> {
  const copy = '.waymark/coding-assistant';
  await mkdir(copy, { recursive: true });
  await cp(fileURLToPath(new URL('sample', import.meta.url)), copy, { recursive: true });
  return copy;
}
