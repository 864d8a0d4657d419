// Runs the suites of stores, agents, server and engines inside Bun, Deno and the oldest supported Node, then the tests that start
// other runtimes from Node. Prints a line per step, and exits 1 if one failed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { linkPackage, root, runtimes } from './commands.ts';

/** The suites that say what works in a runtime. `docs/runtimes.md` names them. */
const suites = [
  'test/store/memory.test.ts',
  'test/store/sqlite.test.ts',
  'test/store/file.test.ts',
  'test/store/postgres.test.ts',
  'test/agent/contract-memory.test.ts',
  'test/agent/contract-sqlite.test.ts',
  'test/agent/contract-wire.test.ts',
  'test/server/native.test.ts',
  'test/server/websocket.test.ts',
  'test/engine/contract.test.ts',
];

const vitest = join(root, 'node_modules/vitest/vitest.mjs');
let failed = 0;

function step(name: string, command: string, args: readonly string[]): void {
  const started = performance.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) failed++;
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(`::: ${name}: ${status === 0 ? 'passed' : 'FAILED'} after ${seconds} s`);
}

linkPackage();
for (const name of ['node22', 'bun', 'deno'] as const) {
  const { execPath, execArgv } = runtimes[name];
  step(name, execPath, [...execArgv, vitest, 'run', ...suites]);
}
step('other runtimes', process.execPath, [
  vitest,
  'run',
  '--config',
  'test/runtimes/vitest.config.ts',
]);
if (failed > 0) process.exitCode = 1;
