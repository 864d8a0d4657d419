/**
 * Measures memory with 1,000 sessions and 20,000 entries of one owner: `node bench/memory/run.ts [sqlite|postgres]`. Prints one
 * line of JSON for each store. Ratios are of interleaved turns in this run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { z } from 'zod';
import { type MemoryOptions, type Store, waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { startPostgres } from '../../test/support/postgres.ts';

const sessions = Number(process.env.SESSIONS ?? 1_000);
const perSession = 20;
const length = 384;
const searches = Number(process.env.SEARCHES ?? 300);
const turns = Number(process.env.TURNS ?? 300);
const owner = 'ada';
const schema = z.object({ text: z.string() });

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
const random = randomFrom(7);
const syllables = ['ka', 'lo', 'mi', 'ren', 'ta', 'vos', 'pel', 'dun', 'sha', 'gri', 'bo', 'nex'];
const pick = <Item>(items: readonly Item[]): Item =>
  items[Math.floor(random() * items.length)] as Item;
const words = Array.from(
  { length: 4_000 },
  () => pick(syllables) + pick(syllables) + pick(syllables),
);
const sentence = (count: number): string =>
  Array.from({ length: count }, () => pick(words)).join(' ');

/** A vector that depends on the text only. */
function vectorOf(text: string): number[] {
  let seed = 1;
  for (const character of text) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) >>> 0;
  const next = randomFrom(seed);
  return Array.from({ length }, () => next() - 0.5);
}
async function embed(texts: readonly string[]): Promise<number[][]> {
  return texts.map(vectorOf);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2),
  );
}

/** Runs something and gives the CPU time of the process, in milliseconds. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e3;
}

/** Runs something and gives its time in milliseconds. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

async function open(store: Store, options: Partial<MemoryOptions<typeof schema>> = {}) {
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const app = waymark({ model, store: { ...store, close: async () => {} } });
  const facts = app.defineMemory({ name: 'facts', schema, ...options });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  const plain = app.defineAgent({ name: 'plain' });
  return { app, facts, assistant, plain };
}

async function fill(store: Store): Promise<void> {
  const { app, assistant } = await open(store);
  const { memory } = store;
  for (let at = 0; at < sessions; at++) {
    const { sessionId, snapshotId = '' } = await assistant.run('hello', { owner });
    const versions = Array.from({ length: perSession }, (_, index) => {
      const id = `${at}-${index}`;
      const source = { snapshotId, message: 1, seq: index + 1, createdAt: Date.now() };
      const value = { text: sentence(12) };
      return { scope: JSON.stringify(['facts', 'owner', owner]), id, entry: id, value, ...source };
    });
    const notes = [
      {
        snapshotId,
        path: [[`lane-${at}`, 1, perSession]] as const,
        given: [],
        createdAt: Date.now(),
      },
    ];
    await memory?.importSession({ agent: 'assistant', owner }, sessionId, {
      ...{ family: `family-${at}`, lane: `lane-${at}`, versions, notes },
    });
  }
  await app.close();
}

async function measure(facts: Awaited<ReturnType<typeof open>>['facts']) {
  const first = await timed(() => facts.search(sentence(3), { owner }));
  const queries = Array.from({ length: searches }, () => sentence(3));
  for (const query of queries.slice(0, 20)) await facts.search(query, { owner });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const times: number[] = [];
  const before = process.cpuUsage();
  for (const query of queries) times.push(await timed(() => facts.search(query, { owner })));
  delay.disable();
  const { user, system } = process.cpuUsage(before);
  return {
    // On a busy machine, the time on the clock says more about the others.
    cpuEach: Number(((user + system) / 1e3 / searches).toFixed(2)),
    first: Math.round(first),
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    blockedP99: Number((delay.percentile(99) / 1e6).toFixed(1)),
    blockedMax: Number((delay.max / 1e6).toFixed(1)),
  };
}

async function run(name: string, store: Store): Promise<void> {
  await fill(store);
  const byText = await open(store);
  const text = await measure(byText.facts);
  // Turns that write nothing, without the search: the memory is read by the turn in both, and timed apart.
  const withMemory: number[] = [];
  const without: number[] = [];
  const searching: number[] = [];
  for (let at = 0; at < turns; at++) {
    const input = sentence(6);
    without.push(await cpuOf(() => byText.plain.run(input, { owner })));
    withMemory.push(await cpuOf(() => byText.assistant.run(input, { owner })));
    searching.push(await cpuOf(() => byText.facts.search(input, { owner, limit: 20 })));
  }
  await byText.app.close();
  const turn = quantile(withMemory, 0.5);
  const plain = quantile(without, 0.5);
  const search = quantile(searching, 0.5);
  const byMeaning = await open(store, { embed });
  const key = JSON.stringify(['vectors', ['facts', 'owner', owner]]);
  const all = sessions * perSession;
  const embedding = await timed(async () => {
    await byMeaning.facts.search('start', { owner });
    for (;;) {
      const last = await countOf(store, key);
      if (last >= all) break;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  });
  await byMeaning.app.close();
  const again = await open(store, { embed });
  const meaning = await measure(again.facts);
  await again.app.close();
  const ratio = Number(((turn - search) / plain).toFixed(2));
  console.log(
    JSON.stringify({
      ...{ name, entries: all, text, meaning, embeddingMs: Math.round(embedding) },
      turns: { plain, withMemory: turn, search, ratioWithoutSearch: ratio },
    }),
  );
}

async function countOf(store: Store, key: string): Promise<number> {
  let after = 0;
  for (;;) {
    const page = await store.memory?.read({ key, owner }, after);
    if (page?.count !== undefined) return page.count;
    after = page?.versions.at(-1)?.no ?? after;
  }
}

const only = process.argv[2];
if (only !== 'postgres') {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-bench-'));
  const store = sqliteStore(join(folder, 'bench.db'));
  await run('sqlite', store);
  await store.close?.();
  await rm(folder, { recursive: true });
}
if (only !== 'sqlite') {
  const postgres = await startPostgres();
  const store = postgresStore({ connectionString: postgres.connectionString });
  await run('postgres', store);
  await store.close?.();
  await postgres.stop();
}
