import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { memoryStore, waymark } from '../../src/index.ts';
import { replay } from '../../src/replay/replay.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { memoryIn } from './support/memory-behaviour.ts';

/** `MEMORY_SESSIONS=1000` is the whole size. */
const size = Number(process.env.MEMORY_SESSIONS ?? 60);
const owner = { owner: 'ada' };
const schema = z.object({ text: z.string() });

let postgres: TestPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'waymark-memory-scale-'));
});
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** All files of a folder, as bytes. */
async function filesIn(path: string): Promise<string> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map((file) => readFile(join(file.parentPath, file.name), 'latin1'));
  return (await Promise.all(texts)).join('\n');
}

/** The files of the relations of the database, once they are rewritten. The log of the server is not part of them. */
async function relations(): Promise<string> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  try {
    await client.query('VACUUM FULL');
    await client.query('CHECKPOINT');
    const data: string = (await client.query('SHOW data_directory')).rows[0].data_directory;
    return await filesIn(join(data, 'base'));
  } finally {
    await client.end();
  }
}

/** Sessions that learn ten texts each; one in ten is deleted. The texts of those are in no file. */
async function erase(store: Store, dump: () => Promise<string>): Promise<void> {
  const canaries = Array.from({ length: 10 }, (_, at) => `%-canary-${at}-of-memory`);
  const model = scriptedModel({
    patterns: [
      [
        /^learn (\d+)-end/,
        ([, of = '']) => ({
          toolCalls: canaries.map((text, at) => ({
            ...{ name: 'remember', ref: `call-${at}` },
            input: { text: text.replace('%', of) },
          })),
        }),
      ],
    ],
    afterTools: () => 'ok',
    otherwise: 'ok',
  });
  const embed = async (texts: readonly string[]) => texts.map((text) => [text.length, 1]);
  const app = waymark({ model, store: { ...store, close: async () => {} } });
  const facts = app.defineMemory({ name: 'facts', schema, embed });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  const sessions: string[] = [];
  for (let at = 0; at < size; at++) {
    sessions.push((await assistant.run(`learn ${at}-end`, owner)).sessionId);
  }
  const gone = sessions.filter((_, at) => at % 10 === 0);
  for (const sessionId of gone) await assistant.deleteSession(sessionId, owner);
  await app.close();
  await store.close?.();
  const text = await dump();
  const kept = new Set(text.match(/\d+-canary-\d-of-memory/g));
  const found = sessions.flatMap((_, of) =>
    canaries.filter((each) => kept.has(each.replace('%', `${of}`))).map(() => of),
  );
  expect(found.filter((of) => of % 10 === 0)).toEqual([]);
  // What was not deleted is there, so the search above would have found the rest.
  expect(found).toHaveLength((sessions.length - gone.length) * canaries.length);
}

test('S818 after deleting sessions, nothing that they remembered is in the files of SQLite', async () => {
  const own = await mkdtemp(join(folder, 'sqlite'));
  await erase(sqliteStore(join(own, 'test.db')), () => filesIn(own));
});

test('S818 after deleting sessions, nothing that they remembered is in the files of the file store', async () => {
  const own = join(folder, 'files');
  await erase(fileStore(own), () => filesIn(own));
});

test('S818 after deleting sessions, nothing that they remembered is in the relations of Postgres', async () => {
  const { connectionString } = postgres;
  await erase(postgresStore({ connectionString }), relations);
});

test('S943 each replayed turn gets the memory of its time', async () => {
  const model = scriptedModel({
    patterns: [
      [/^learn (\S+)/, ([, text]) => ({ toolCalls: [{ name: 'remember', input: { text } }] })],
    ],
    afterTools: () => 'ok',
    otherwise: 'ok',
  });
  const app = waymark({ model, store: memoryStore() });
  const facts = app.defineMemory({ name: 'facts', schema });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  const told = new Map<string, string>();
  let sessionId: string | undefined;
  const inputOf = (messages: Parameters<typeof memoryIn>[0]): string =>
    JSON.stringify(messages?.findLast(({ role }) => role === 'user')?.content);
  const note = (requests: typeof model.requests, into: Map<string, string>): void => {
    for (const { messages } of requests) {
      into.set(inputOf(messages), memoryIn(messages) ?? '');
    }
  };
  for (let at = 0; at < size; at++) {
    const input = at % 3 === 0 ? `learn text-${at}` : `hello ${at}`;
    const where = sessionId === undefined || at % 10 === 0 ? {} : { sessionId };
    sessionId = (await assistant.run(input, { ...owner, ...where })).sessionId;
    if (at % 5 !== 4) continue;
    const [newest] = (await facts.list({ ...owner, limit: 1 })).items;
    if (newest) await facts.update(newest.id, { text: `changed at ${at}` }, owner);
  }
  note(model.requests, told);
  const again = scriptedModel({ patterns: [], otherwise: 'ok' });
  const { turns, skipped } = await replay(app, { sessions: owner, with: { model: again } });
  expect(skipped).toEqual([]);
  expect(turns).toHaveLength(size);
  const retold = new Map<string, string>();
  note(again.requests, retold);
  expect(retold.size).toBe(size);
  for (const [input, memory] of retold) expect(memory).toBe(told.get(input));
  await app.close();
});
