import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel(['Done.']);
const vendor = fileURLToPath(new URL('../../test/acp/fixture/vendor.ts', import.meta.url));
const command = [process.execPath, vendor];
mkdirSync('vendor-project');

// #region serve
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { directory, workspaceTools } from 'waymark/workspace';

export const app = waymark({ model, store: sqliteStore('agents.db') });

app.defineAgent({
  name: 'coder',
  system: 'You work on the files of a project.',
  workspace: (_, { cwd = '.' }) => directory(String(cwd)), // the folder that is open in the editor
  tools: [workspaceTools({ shell: 'ask' })],
});

// #endregion

// #region use
import { acpAgent } from 'waymark/acp';

const claude = app.defineCustomAgent(
  ...acpAgent({
    name: 'claude',
    command, // such as ['npx', '-y', '@agentclientprotocol/claude-agent-acp']
    env: { ANTHROPIC_API_KEY: process.env.ANTHROPIC_API_KEY },
    workspace: directory('./vendor-project'),
  }),
);

const first = await claude.run('Add a test');
let second = await claude.run('ask', { sessionId: first.sessionId });
while (second.finishReason === 'interrupted') {
  second = await claude.resume(second, (request) => request.approve()); // or ask a person
}

await claude.restore(first); // conversation and files
// #endregion
assert.equal(second.text, 'only: yes');
await app.close();
