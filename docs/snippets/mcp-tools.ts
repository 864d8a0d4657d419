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

// #region tasks
const research = mcp('research', { url: 'https://research.example.com/mcp', tasks: true });
// #endregion

// #region secrets
const github = mcp('github', {
  command: 'npx',
  args: ['-y', '@example/github-server'],
  env: { GITHUB_TOKEN: process.env.GITHUB_TOKEN }, // nothing else from process.env
});

// #endregion

process.env.CRM_SECRET ??= 'not a real one';

// #region oauth
import { ClientCredentialsProvider } from '@modelcontextprotocol/client';

const clientSecret = process.env.CRM_SECRET;
if (!clientSecret) throw new Error('Set CRM_SECRET to the secret of the client "agents".');
const crm = mcp('crm', {
  url: 'https://crm.example.com/mcp',
  auth: new ClientCredentialsProvider({
    clientId: 'agents',
    clientSecret,
    expectedIssuer: 'https://login.example.com',
  }),
});
// #endregion

const tokenOf = (user: string | undefined): string => `token of ${user}`;
// #region users
const calendar = mcp('calendar', {
  url: 'https://calendar.example.com/mcp',
  user: (context) => context.userId as string | undefined,
  headers: (user) => ({ authorization: `Bearer ${tokenOf(user)}` }),
});

async function plan(): Promise<void> {
  await chat.run('What is next?', { context: { userId: 'ada' } });
}
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

assert.ok(
  [calendar, plan, summarize, start, answer, search, research, github, crm, careful].every(Boolean),
);
