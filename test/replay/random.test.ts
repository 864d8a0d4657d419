import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, type Store } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { replay, scriptedModelFrom } from 'waymark/replay';
import { sqliteStore } from 'waymark/sqlite';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { live, lives, openRandomApp } from './support/random-session.ts';

const count = process.env.LONG === '1' ? 60 : 10;
const folder = join(tmpdir(), `waymark-random-replay-${process.pid}`);
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  file: () => fileStore(join(folder, 'files')),
  SQLite: () => sqliteStore(join(folder, 'replay.db')),
  Postgres: () => postgresStore({ connectionString: postgres.connectionString }),
};

/** The only reasons for which a turn of these sessions cannot be replayed. */
const reasons = [
  'The turn was stopped before it ended, so there is no result to compare with.',
  /^The snapshot has the result of \d+ turns: the states between them were not stored\.$/,
];

test.each(Object.keys(stores))(
  'S423 random sessions replay without a difference, from a %s store',
  async (name) => {
    const app = openRandomApp((stores[name] as () => Store)());
    try {
      await app.ready();
      for (const life of fc.sample(lives, { numRuns: count, seed: 24 })) await live(app, life);
      const report = await replay(app, {
        sessions: {},
        with: (session) => ({ model: scriptedModelFrom(session) }),
      });
      expect(
        report.turns.flatMap(({ divergences, sessionId, turnIndex, input }) =>
          divergences.map((each) => ({ ...each, sessionId, turnIndex, input })),
        ),
      ).toEqual([]);
      expect(report.turns.flatMap(({ missingEffects }) => missingEffects)).toEqual([]);
      for (const { reason } of report.skipped)
        expect(reasons.some((each) => reason.match(each) !== null)).toBe(true);
      expect(report.sessions).toBeGreaterThanOrEqual(count);
      expect(report.turns.length).toBeGreaterThan(count * 3);
      expect(report.replayed.tokens).toBe(report.recorded.tokens);
    } finally {
      await app.close();
    }
  },
);
