import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel(['Hello']);
const token = (): string => 'secret';

// #region use

import { toolApproval, waymark } from 'waymark';
import { mcp } from 'waymark/mcp';

const app = waymark({ model });

const files = mcp('files', {
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-filesystem', '.'],
});
const docs = mcp('docs', {
  url: 'https://docs.example.com/mcp',
  headers: () => ({ authorization: `Bearer ${token()}` }), // called for each request
});

const chat = app.defineAgent({
  name: 'chat',
  system: 'Help with the files of this project.',
  tools: [files.except('move_file'), docs.only('search')],
  use: [toolApproval(({ name }) => name.startsWith('files_write'))],
});
// #endregion

// #region ready
async function start(): Promise<void> {
  await app.ready(); // connects, lists the tools, checks their names
  const { text } = await chat.run('What is in the README?');
  console.log(text);
  await app.close(); // ends the servers
}
// #endregion

// #region names
const search = mcp('web', {
  url: 'https://search.example.com/mcp',
  prefix: '', // the server's own names
  rename: { query: 'search_web' },
  timeout: 10_000,
});
// #endregion

// #region secrets
const github = mcp('github', {
  command: 'npx',
  args: ['-y', '@example/github-server'],
  env: { GITHUB_TOKEN: process.env.GITHUB_TOKEN }, // nothing else of process.env
});

// #endregion

// #region oauth
import { ClientCredentialsProvider } from '@modelcontextprotocol/client';

const crm = mcp('crm', {
  url: 'https://crm.example.com/mcp',
  auth: new ClientCredentialsProvider({
    clientId: 'agents',
    clientSecret: process.env.CRM_SECRET ?? '',
    expectedIssuer: 'https://login.example.com',
  }),
});
// #endregion

// #region annotations
const careful = toolApproval((_request, { metadata }) => {
  const about = metadata?.mcp as { annotations?: { readOnlyHint?: boolean } } | undefined;
  return about !== undefined && about.annotations?.readOnlyHint !== true;
});
// #endregion

// #region question
async function answer(): Promise<void> {
  const asked = await chat.run('Deploy it.');
  const [question] = asked.interrupts;
  if (!question) return;
  console.log(question.metadata); // { message: 'Deploy to which stage?', schema: { … }, … }
  await chat.resume(
    asked,
    question.approve({ resumed: { action: 'accept', content: { stage: 'test' } } }),
  );
}
// #endregion

// #region resources
const page = docs.resource('page', 'docs://{page}');

async function summarize(): Promise<void> {
  await app.generate({
    messages: [{ role: 'user', content: [{ resource: { uri: 'docs://intro' } }] }],
    resources: [page],
  });
  await app.generate({ messages: await docs.prompt('summarize', { topic: 'MCP' }) });
}
// #endregion

assert.ok([summarize, start, answer, search, github, crm, careful].every(Boolean));
