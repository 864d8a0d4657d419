/** A replay as a suite of vitest-evals and of evalite. Both need Vitest 4, so they are a package of their own. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, 'evals');
const run = async (...args: string[]): Promise<string> => {
  const { VITEST: _, VITEST_POOL_ID: __, VITEST_WORKER_ID: ___, ...env } = process.env;
  const options = { cwd: folder, env: { ...env, NO_COLOR: '1' } };
  return (await promisify(execFile)(process.execPath, args, options)).stdout;
};

test('S425 a replay is a suite of vitest-evals', async () => {
  expect(await run('node_modules/vitest/vitest.mjs', 'run')).toMatch(/Tests\s+2 passed/);
});

test('S425 a replay is an eval of evalite', async () => {
  const out = await mkdtemp(join(tmpdir(), 'waymark-evalite-'));
  try {
    const path = join(out, 'results.json');
    await run('run-evalite.mjs', path);
    const { evals } = JSON.parse(await readFile(path, 'utf8'));
    expect(evals).toMatchObject([{ name: 'stored session', status: 'success', averageScore: 1 }]);
    expect(evals[0].results).toHaveLength(2);
  } finally {
    await rm(out, { recursive: true });
  }
});
