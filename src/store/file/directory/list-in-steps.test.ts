import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listInSteps } from './list-in-steps.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-list-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('many names are listed in the order of a sort, and others use the thread meanwhile', async () => {
  for (let no = 0; no < 2600; no++)
    mkdirSync(join(folder, `${(no * 7919) % 10_007} ${'é~Z'[no % 3]}`));
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  const names = await listInSteps(folder);
  isDone = true;
  expect(names).toEqual(readdirSync(folder).sort());
  // Six lists are read, and merged in five steps of two or more portions each.
  expect(turns).toBeGreaterThanOrEqual(15);
});

test('a folder may be empty, or have as many names as are read at a time', async () => {
  expect(await listInSteps(folder)).toEqual([]);
  for (let no = 0; no < 512; no++) mkdirSync(join(folder, `${no}`));
  expect(await listInSteps(folder)).toEqual(readdirSync(folder).sort());
  await expect(listInSteps(join(folder, 'none'))).rejects.toThrow('ENOENT');
});
