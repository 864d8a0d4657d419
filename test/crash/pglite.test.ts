import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pgliteStore } from '../../src/store/pglite/index.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { someMoment } from '../support/some-moment.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-pglite-'));
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

// One process has the database, so there is no other to take over: the next one opens what the killed one has left.
test('kill -9 of the process of a PGlite database loses no turn that was acknowledged', async () => {
  const path = join(folder, 'data');
  const script = bundleChild(new URL('../support/pglite-child.ts', import.meta.url));
  for (let round = 0; round < 3; round++) {
    const child = startProcess([script, import.meta.url, path]);
    const line = await child.take((said) => (said.endsWith(' 4') ? said : undefined), 'turn 4');
    await someMoment(round);
    await child.end();
    const [sessionId = ''] = line.split(' ');
    const told = Math.max(...[line, ...child.lines].map((said) => Number(said.split(' ')[1])));
    const db = await PGlite.create(path);
    const store = pgliteStore(db);
    const read = await store.getSnapshot({ agent: 'bench' }, { sessionId });
    const messages = read?.state?.messages?.length ?? 0;
    // One more turn may have been saved before it could be told.
    expect([told, told + 1]).toContain(messages / 2);
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
    await db.close();
  }
}, 300_000);
