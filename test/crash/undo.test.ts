import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, type Store } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { Ledger } from '../support/ledger.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import type { UndoChildOptions } from './undo-child.ts';

const isLong = process.env.LONG === '1';
const size = isLong
  ? { sessions: 50, turns: 4, calls: 5, kills: 500 }
  : { sessions: 4, turns: 2, calls: 4, kills: 12 };

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());
afterEach(endProcesses);

/** Services behind HTTP, with a ledger that no kill reaches. */
async function startServices(ledger: Ledger) {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    const { what, id, key } = JSON.parse(text) as Record<'what' | 'id' | 'key', string>;
    // Some answers come late, so that a kill comes between the deed and its mark.
    const before = Math.random() < 0.5;
    if (before) await pause(Math.random() * 8);
    const answer = request.url === '/do' ? ledger.do(what, key) : { id };
    if (request.url === '/undo') ledger.undo(id, key);
    if (!before) await pause(Math.random() * 8);
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((closed) => server.close(closed).closeAllConnections()),
  };
}

const kinds = ['sqlite', 'files', 'postgres'] as const;

describe.each(kinds)('S773 kill -9 of two processes that undo, over %s', (kind) => {
  test(
    'undoes each effect exactly once, and moves every head',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'waymark-undo-crash-'));
      const ledger = new Ledger();
      const services = await startServices(ledger);
      const at =
        kind === 'postgres'
          ? `${postgres.connectionString} undo_crash`
          : join(folder, kind === 'sqlite' ? 'store.db' : 'store');
      const script = bundleChild(new URL('undo-child.ts', import.meta.url));
      const { kills, ...load } = size;
      const start = (role: UndoChildOptions['role'], mayDie = false): TestProcess => {
        const options: UndoChildOptions = { kind, at, services: services.url, role, ...load };
        return startProcess([script, JSON.stringify(options)], { mayDie });
      };
      await start('fill').finished();
      const effects = load.sessions * load.turns * load.calls;
      expect(ledger.standing).toHaveLength(effects);

      const isReady = (line: string): true | undefined => (line === 'ready' ? true : undefined);
      const workers = [start('undo', true), start('undo', true)];
      let killed = 0;
      // A kill at a random moment, also before anything has begun.
      while (killed < kills && ledger.standing.length > 0) {
        const place = killed % 2;
        const worker = workers[place];
        if (worker === undefined) throw new Error('no worker');
        if (killed % 5 > 0)
          await Promise.race([worker.take(isReady).catch(() => {}), worker.ended]);
        await pause(Math.random() * (isLong ? 25 : 60));
        await worker.end('SIGKILL');
        killed++;
        workers[place] = start('undo', true);
      }
      for (const worker of workers) await worker.end('SIGKILL');
      await Promise.all([start('undo'), start('undo')].map((each) => each.finished()));

      expect(ledger.standing).toEqual([]);
      expect(ledger.undone.size).toBe(effects);
      // Once: whatever was asked for again came under the same key.
      for (const keys of ledger.undone.values()) expect(keys.size).toBe(1);
      const store = open(kind, at);
      for (let no = 0; no < load.sessions; no++) {
        const scope = { agent: 'clerk' };
        const session = await store.timeline?.getSession(scope, `s${no}`);
        expect(session).toMatchObject({ turnCount: 1 });
        const stored = await store.effects?.list(scope, `s${no}`);
        expect(stored?.every(({ undoneAt }) => undoneAt !== undefined)).toBe(true);
      }
      expect(await store.runs?.listRuns()).toEqual([]);
      expect(await store.maintenance?.verify()).toEqual([]);
      // Most kills fall into an undo, and all of them do in a long run.
      expect(killed).toBeGreaterThan(isLong ? kills - 1 : 0);
      console.log(`${kind}: ${killed} kills, ${effects} effects`);
      await store.close?.();
      await services.close();
      await rm(folder, { recursive: true, force: true });
    },
    isLong ? 3_600_000 : 240_000,
  );
});

function open(kind: (typeof kinds)[number], at: string): Store {
  if (kind === 'sqlite') return sqliteStore(at);
  if (kind === 'files') return fileStore(at);
  const [connectionString = '', schema = ''] = at.split(' ');
  return kind === 'postgres' ? postgresStore({ connectionString, schema }) : memoryStore();
}
