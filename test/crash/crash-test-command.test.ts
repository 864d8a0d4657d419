/** crash-test --kill: real processes, kill -9, and the store of the app. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { sqliteStore } from 'waymark/sqlite';
import type { CrashReport } from 'waymark/testing';
import { command, tempFolder } from '../cli/support/command.ts';

const agents = fileURLToPath(new URL('../crash-test/fixture/agents.ts', import.meta.url));
const folder = tempFolder();
afterAll(() => folder.remove());

test('crash-test --kill finds a tool that charges twice, and leaves no session in the store', async () => {
  const found = await command(folder.path, [
    'crash-test',
    agents,
    '--agent',
    'till',
    '--input',
    'Charge order 7',
    '--allow-effects',
    '--kill',
    '--json',
  ]);
  expect(found.stderr).toBe('');
  const report: CrashReport = JSON.parse(found.stdout);
  expect(report).toMatchObject({
    kind: 'crash-test',
    ok: false,
    repeatedEffects: [
      {
        effect: 'tool charge({"order":7})',
        expected: 1,
        actual: 2,
        points: ['after tool charge', 'before store write checkpoint'],
      },
    ],
    lostState: [],
  });
  expect(report.points.map(({ ended }) => ended)).toEqual(report.points.map(() => 'same'));
  expect(report.points.length).toBeGreaterThanOrEqual(12);
  expect(found.code).toBe(1);
  // Two runs without a crash, a charge after each crash, and the repeated ones.
  const charges = readFileSync(join(folder.path, 'charges.txt'), 'utf8').trim().split('\n');
  expect(charges).toHaveLength(2 + report.points.length + 2);
  const store = sqliteStore(join(folder.path, 'crash.db'));
  await store.open?.();
  expect((await store.timeline?.listOwners?.())?.items).toEqual([]);
  expect(await store.runs?.listRuns()).toEqual([]);
  await store.close?.();
});
