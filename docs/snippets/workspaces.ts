import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  otherwise: 'Done.',
  afterTools: () => 'Done.',
  patterns: [
    [
      /tests pass/,
      { toolCalls: [{ name: 'write', input: { path: 'src/index.js', content: 'sum();\n' } }] },
    ],
    [
      /rename/,
      {
        toolCalls: [{ name: 'edit', input: { path: 'src/index.js', find: 'sum', replace: 'add' } }],
      },
    ],
    [/install/, { toolCalls: [{ name: 'shell', input: { command: 'echo installed > log.txt' } }] }],
  ],
});
mkdirSync('project');
mkdirSync('template');
writeFileSync('template/README.md', '# New site\n');

// #region start
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { directory, workspaceTools } from 'waymark/workspace';

const app = waymark({ model, store: sqliteStore('agents.db') });

const project = directory('./project'); // a folder that exists; respects .gitignore, never touches .git

const coder = app.defineAgent({
  name: 'coder',
  system: 'You work on the files of a project.',
  workspace: project,
  tools: [workspaceTools({ shell: 'ask' })],
});

const first = await coder.run('Make the tests pass');
const second = await coder.run('Now rename the module', { sessionId: first.sessionId });
// #endregion
assert.equal(readFileSync('project/src/index.js', 'utf8'), 'add();\n');

// #region look
for (const { path, size } of (await coder.listFiles(second)).items) console.log(path, size);

const { stream } = await coder.openFile(second, 'src/index.js');
console.log(await new Response(stream).text());

const { files = [] } = await coder.diff(first, second);
for (const { path, change, lines = [] } of files) {
  console.log(change, path);
  for (const { kind, text } of lines) console.log(kind, text);
}
// #endregion
assert.deepEqual(
  files.map(({ path, change }) => [path, change]),
  [['src/index.js', 'changed']],
);

// #region restore
const preview = await coder.diff(second, first, { workspace: 'now' }); // what a restore changes in the folder
await coder.restore(first); // conversation, state, artifacts and files
await coder.restore(second, { workspace: false }); // everything except the files
await coder.checkout(second, './elsewhere'); // the files of any snapshot, in a new folder
// #endregion
assert.equal(preview.files?.length, 1);
assert.equal(readFileSync('project/src/index.js', 'utf8'), 'sum();\n');
assert.equal(readFileSync('elsewhere/src/index.js', 'utf8'), 'add();\n');
await coder.restore(second);

// #region edits
writeFileSync('project/notes.txt', 'written by a person');
await coder.run('What is in my notes?', { sessionId: first.sessionId });

const { items } = await coder.listSnapshots(first.sessionId);
items.find(({ event }) => event === 'edit')?.edit?.reason; // why there is one more snapshot
// #endregion
assert.equal(items.filter(({ event }) => event === 'edit').length > 0, true);

// #region per-session
const sites = directory.perSession({ from: './template', in: './workspaces' });
const builder = app.defineAgent({ name: 'builder', workspace: sites, tools: [workspaceTools()] });

const site = await builder.run('Hello');
const variant = await builder.fork(site); // its first turn gets a folder of its own
// #endregion
const forked = await builder.listFiles(variant);
assert.deepEqual(
  forked.items.map(({ path }) => path),
  ['README.md'],
);

// #region shell
const asked = await coder.run('Please install it', { sessionId: first.sessionId });
asked.interrupts[0]?.input; // the command
const answer = await coder.resume(asked, (request) => request.approve());
// #endregion
assert.equal(answer.finishReason, 'stop');
assert.equal(readFileSync('project/log.txt', 'utf8'), 'installed\n');
await app.close();
