/** crash-test, with simulated processes; test/crash has real ones. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, expect, test } from 'vitest';
import type { CrashReport } from 'waymark/testing';
import { Running, tempFolder } from './support/command.ts';

const agents = fileURLToPath(new URL('../crash-test/fixture/agents.ts', import.meta.url));
const folder = tempFolder();
let mails = 0;
const server = createServer((_, response) => {
  mails++;
  response.end();
}).listen(0, '127.0.0.1');
const charges = join(folder.path, 'charges.txt');

beforeEach(() => rmSync(charges, { force: true }));
afterAll(() => {
  server.close();
  folder.remove();
});

function run(...args: string[]) {
  const { port } = server.address() as AddressInfo;
  const env = { MAIL_URL: `http://127.0.0.1:${port}/mail` };
  return new Running(['crash-test', ...args], folder.path, env).end();
}

const desk = [agents, '--agent', 'desk', '--input', 'Charge order 7'];

const mistakes = {
  kind: 'crash-test',
  ok: false,
  repeatedEffects: [
    { effect: expect.stringMatching(/^POST http.*\/mail$/), where: 'outside a tool' },
    { effect: 'tool charge({"order":7})', where: 'tool charge', expected: 1, actual: 2 },
  ],
  lostState: [{ path: '/messages/4/content/0/toolResponse/output', expected: 10, actual: 0 }],
};

test('crash-test reports three mistakes, with modules that are new in each simulated process', async () => {
  const found = await run(...desk, '--allow-effects', '--json');
  expect(found.stderr).toBe('');
  expect(found.code).toBe(1);
  const report: CrashReport = JSON.parse(found.stdout);
  expect(report).toMatchObject(mistakes);
  expect(report.points).toHaveLength(18);
  expect(mails).toBeGreaterThan(18);
});

test('crash-test prints a table of the crash points and the repair', async () => {
  const { code, stdout } = await run(
    agents,
    ...['--agent', 'till', '--input', 'Charge order 7', '--allow-effects'],
  );
  expect(code).toBe(1);
  expect(stdout).toMatch(/^crash +ran again +lost +ended\n/);
  expect(stdout).toMatch(/after tool charge +model call 1, tool charge\({"order":7}\) +– +same/);
  expect(stdout).toContain('✗ Repeated effect (tool charge)');
  expect(stdout).toContain('Pass the idempotencyKey of the tool context');
});

test('crash-test runs nothing that may have effects without --allow-effects', async () => {
  const refused = await run(...desk);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('these may have effects: charge.');
  expect(existsSync(charges)).toBe(false);
  const own = await run(agents, '--agent', 'own', '--input', 'go');
  expect(own.stderr).toContain('custom agent');
  // A tool that is declared as repeatable, and a turn that survives.
  const reader = await run(agents, '--agent', 'reader', '--input', 'hello');
  expect(reader).toMatchObject({ code: 0, stderr: '' });
  expect(reader.stdout).toContain('✓ Agent "reader" survives 6 crashes.');
});

test('crash-test takes recorded sessions, whose tools do not run', async () => {
  const chat = ['chat', 'till', 'Charge order 7', '--session', 'sold', '--file', agents];
  expect((await new Running(chat, folder.path).end()).code).toBe(0);
  rmSync(charges);
  const found = await run(agents, '--agent', 'till', '--sessions', 'sold', '--json');
  expect(found).toMatchObject({ code: 0, stderr: '' });
  const report: CrashReport = JSON.parse(found.stdout);
  expect(report).toMatchObject({ ok: true, repeatedEffects: [], skipped: [] });
  expect(report.points.find(({ at }) => at === 'after tool charge')).toMatchObject({
    turn: 'sold, turn 1',
    ranAgain: ['model call 1', 'tool charge({"order":7})'],
  });
  expect(existsSync(charges)).toBe(false);
  const live = await run(agents, '--agent', 'till', '--sessions', 'sold', '--tools', 'live');
  expect(live.code).toBe(2);
});

test('crash-test refuses wrong options', async () => {
  const code = async (...args: string[]) => (await run(agents, ...args)).code;
  expect(await code('--agent', 'desk')).toBe(2);
  expect(await code('--agent', 'desk', '--input', 'x', '--sessions', 'y')).toBe(2);
  expect(await code('--agent', 'desk', '--input', 'x')).toBe(2);
  expect(await code('--agent', 'nobody', '--input', 'x')).toBe(3);
  expect(await code('--input', 'x', '--allow-effects')).toBe(2);
  expect(await code('--agent', 'desk', '--sessions', 'y', '--kill')).toBe(2);
  expect(await code('--agent', 'reader', '--input', 'x', '--tools', 'live')).toBe(2);
  writeFileSync(join(folder.path, 'empty.jsonl'), '\n');
  const none = await run(agents, '--agent', 'reader', '--sessions', 'empty.jsonl');
  expect(none.code).toBe(3);
  expect(none.stderr).toContain('No turn was tested.');
});
