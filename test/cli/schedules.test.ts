import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../support/build-once.ts';
import { command, tempFolder } from './support/command.ts';

const folder = tempFolder();
beforeAll(() => {
  writeFileSync(
    join(folder.path, 'agents.ts'),
    `import { waymark } from '${root}src/index.ts';
    import { sqliteStore } from '${root}src/store/sqlite/index.ts';
    export const app = waymark({ store: sqliteStore('schedules.db') });
    const agent = app.defineCustomAgent({ name: 'writer' }, async () => {});
    app.schedule({ key: 'digest', cron: '0 7 * * 1-5', timeZone: 'Europe/Lisbon', agent, input: 'x' });
    app.schedule({ key: 'check', every: 900_000, agent, input: 'x' });`,
  );
});
afterAll(() => folder.remove());

test('lists schedules, and starts a run of one', async () => {
  const listed = await command(folder.path, ['schedules']);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^KEY +AGENT +TIMES/) });
  expect(listed.stdout).toMatch(/digest +writer +0 7 \* \* 1-5 Europe\/Lisbon +\d{4}-.*Z +-/);
  expect(listed.stdout).toMatch(/check +writer +every 900000 ms/);
  const { items } = JSON.parse((await command(folder.path, ['schedules', '--json'])).stdout);
  expect(items).toHaveLength(2);
  const started = await command(folder.path, ['schedules', '--run', 'check', '--json']);
  expect(JSON.parse(started.stdout)).toEqual({
    snapshotId: expect.any(String),
    sessionId: expect.any(String),
  });
  const unknown = await command(folder.path, ['schedules', '--run', 'cheek']);
  expect(unknown).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('There are: "digest"'),
  });
});
