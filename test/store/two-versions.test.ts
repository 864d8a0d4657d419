import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/session/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { fixture, releases } from '../support/store-fixtures.ts';
import { createTurns, plainTurn } from '../support/store-workload.ts';

/** What a released version opens a store with. */
interface Released {
  sqliteStore(path: string): Store;
  fileStore(folder: string): Store;
}

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-two-versions-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function released(release: string): Promise<Released> {
  const path = join(folder, 'stores.mjs');
  writeFileSync(path, fixture(release, 'stores.mjs'));
  return (await import(pathToFileURL(path).href)) as Released;
}

const cases = releases.flatMap((release) =>
  (['sqlite', 'file'] as const).map((kind) => ({ release, kind })),
);

describe.each(cases)('a $kind store that $release has open', ({ release, kind }) => {
  const place = (): string => join(folder, 'store');

  test('S234: is refused to it once this version has changed the format, or reads in full', async () => {
    const old = await released(release);
    const before = kind === 'sqlite' ? old.sqliteStore(place()) : old.fileStore(place());
    const turns = createTurns(before);
    await turns.take(2, plainTurn);
    const { scope, sessionId } = turns;

    const now = kind === 'sqlite' ? sqliteStore(place()) : fileStore(place());
    const held = await now.runs?.load(scope, { sessionId });
    expect(held?.state.history.length).toBe(4);
    const own = createTurns(now, scope);
    await own.take(1, plainTurn);
    await now.timeline?.updateSession(scope, sessionId, { title: 'from the new version' });

    // What the older process still gets is all of it, or an error; never less.
    const read = await before.timeline?.getSession(scope, sessionId).then(
      (session) => session?.title,
      () => 'refused',
    );
    expect(['from the new version', 'refused']).toContain(read);
    await expect(turns.take(1, plainTurn)).rejects.toThrow();
    await before.close?.();

    const again = kind === 'sqlite' ? old.sqliteStore(place()) : old.fileStore(place());
    await expect(again.timeline?.getSession(scope, sessionId)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format \d+/),
    });
    await again.close?.();
    expect(await now.maintenance?.verify()).toEqual([]);
    await now.close?.();
  });
});
