import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { scriptedModel } from 'waymark/testing';

const load = { toolCalls: [{ name: 'load_skill', input: { name: 'release-notes' } }] };
const model = scriptedModel({
  patterns: [[/release notes/, load]],
  otherwise: 'Done.',
  afterTools: () => 'Done.',
});
const skill = `---
name: release-notes
description: Writes release notes. Use it when a new version is published.
---

1. List what changed for users since the last version. To find it, run scripts/changes.sh.
2. Write one line for each change, in the style of references/STYLE.md.
`;
mkdirSync('skills/release-notes', { recursive: true });
writeFileSync('skills/release-notes/SKILL.md', skill);

// #region start
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';

const app = waymark({ model, store: sqliteStore('agents.db'), skills: './skills' });
const writer = app.defineAgent({ name: 'writer', system: 'You write for users.' });
await app.ready();

const first = await writer.run('Write the release notes of 2.0');
// #endregion

appendFileSync('skills/release-notes/SKILL.md', '3. Thank the contributors.\n');
const second = await writer.run('Write the release notes again', { sessionId: first.sessionId });
// #region diff
const { skills = [] } = await writer.diff(first, second);
for (const { name, change, from, to } of skills) console.log(name, change, from, to);
// #endregion
assert.deepEqual(
  skills.map(({ name, change }) => [name, change]),
  [['release-notes', 'changed']],
);

// #region mcp
import { mcp } from 'waymark/mcp';

const docs = mcp('docs', { url: 'https://docs.example.com/mcp' });
const support = app.defineAgent({ name: 'support', skills: ['./skills', docs], tools: [docs] });
// #endregion
assert.equal(support.name, 'support');
await app.close();
