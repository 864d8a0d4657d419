import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer } from '../server/kit.ts';
import { tempFolder } from './support/command.ts';
import { type Answers, inTerminal } from './support/fake-terminal.ts';

const folder = tempFolder();
const script = fileURLToPath(new URL('../mcp/support/raw-server.ts', import.meta.url));
const run = (args: readonly string[], answers: Answers = []) =>
  inTerminal(folder.path, ['mcp', ...args], answers);

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({
    auth: (request) =>
      request.headers.get('authorization') === 'Bearer ann' ? { principal: 'ann' } : undefined,
    mcp: { oauth: { authorizationServers: ['https://login.example.com'] } },
  });
});
afterAll(async () => {
  await server.close();
  folder.remove();
});

const yes: Answers[number] = [/Answer\? yes or no: $/, 'yes'];

test('questions of a server are asked in the terminal, and the answers sent', async () => {
  await run(['add', 'raw', '--', process.execPath, script]);
  const asked = await run(['test', 'raw', 'ask'], [yes, [/value, optional: $/, 'Ada']]);
  expect(asked).toMatchObject({ code: 0, stderr: '' });
  expect(asked.stdout).toMatch(/\? Your name\?[\s\S]*\? Your age\?/);
  const answer = '{"action":"accept","content":{"value":"Ada"}}';
  expect(asked.stdout).toContain(`${answer} ${answer}`);
  const declined = await run(['test', 'raw', 'ask'], [[/Answer\? yes or no: $/, 'no']]);
  expect(declined.stdout).toContain('{"action":"decline"} {"action":"decline"}');
});

test('an answer that does not fit is refused, and the question is asked again', async () => {
  await run(['add', 'numbers', '--', process.execPath, script, 'numbers']);
  const asked = await run(
    ['test', 'numbers', 'ask'],
    [
      yes,
      // To the second question, first a word, then a number.
      [/age\?(?:(?!age)[\s\S])*age\?[\s\S]*value, optional: $/, '36'],
      [/value, optional: $/, 'Ada'],
    ],
  );
  expect(asked.code).toBe(0);
  expect(asked.stderr).toMatch(
    /^This does not answer the question\. The content does not fit its schema\. \/value: /,
  );
  expect(asked.stdout.match(/\? Your age\?/g)).toHaveLength(2);
  expect(asked.stdout).toContain('{"action":"accept","content":{"value":36}}');
});

test('a server that requires authorization is refused without a token, and works with one', async () => {
  const url = `${server.url}/mcp`;
  const refused = await run(['add', 'crm', url]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/MCP server "crm" requires authorization\. Check its `headers`/);
  const added = await run(['add', 'crm', url, '--header', 'authorization: Bearer ann']);
  expect(added).toMatchObject({ code: 0, stderr: '' });
  expect(added.stdout).not.toContain('Bearer');
  const called = await run(['test', 'crm', 'chat', '{ "message": "hello" }']);
  expect(called.stdout).toContain('You said 1 things.');
  const asked = await run(
    ['test', 'crm', 'chat', '{ "message": "transfer 5" }'],
    [yes, [/approved[^:]*: $/, 'yes'], [/: $/, '']],
  );
  expect(asked.stdout).toContain('"finishReason": "stop"');
});
