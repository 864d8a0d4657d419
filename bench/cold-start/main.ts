// Cold start: from the start of a process to the first text of its first turn, and to the turn's end, with the instant model and a
// store that exists already.
// Prints a table. `node bench/cold-start/main.ts [starts]`, after `npm run build`; 20 starts each unless told otherwise.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { createScratch } from '../lib/disk.ts';
import { machine, watchNoise } from '../lib/machine.ts';
import { startPostgres } from '../lib/postgres.ts';
import { setUp } from '../lib/setup.ts';
import { statsOf } from '../lib/stats.ts';

/** What is started; only LangGraph has a store on Postgres besides Waymark, the others use what they have on disk. */
const cells = [
  ['node', 'pg', 'Node.js, pg: a connection and a query'],
  ['waymark', 'postgres', 'Waymark, Postgres'],
  ['langgraph', 'postgres', 'LangGraph, Postgres'],
  ['mastra', 'libsql', 'Mastra, libSQL'],
  ['genkit', 'file', 'Genkit, files'],
] as const;

const starts = Number(process.argv[2] ?? 20);
const { path: folder, remove } = createScratch();
setUp();
const postgres = await startPostgres(folder);
const noise = watchNoise();
const samples = new Map<string, Start[]>(cells.map(([, , title]) => [title, []]));
try {
  const places = new Map<string, readonly [string, string]>();
  for (const [name, variant, title] of cells) {
    const directory = mkdtempSync(join(folder, `${name}-`));
    const place = [directory, await postgres.createDatabase(`${name}_${variant}`)] as const;
    places.set(title, place);
    // Creates the tables, and brings the files into the page cache.
    for (let warm = 0; warm < 2; warm++) await startOnce([name, variant, ...place]);
  }
  // They take turns, so that a busy moment of the machine falls on all of them.
  for (let round = 0; round < starts; round++) {
    for (const [name, variant, title] of cells) {
      const start = await startOnce([name, variant, ...(places.get(title) ?? [])]);
      samples.get(title)?.push(start);
    }
  }
  print();
} finally {
  await postgres.stop();
  remove();
}

/** One start: milliseconds until the first text and until the end of the turn, and of CPU time, which a busy machine changes less. */
interface Start {
  readonly firstMs: number;
  readonly ms: number;
  readonly cpuMs: number;
}

async function startOnce(args: readonly string[]): Promise<Start> {
  const begun = performance.timeOrigin + performance.now();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: '', LANGSMITH_TRACING: 'false' },
  });
  let said = '';
  child.stderr.on('data', (text) => {
    said = (said + String(text)).slice(-2000);
  });
  const exit = once(child, 'exit');
  let told = '';
  for await (const text of child.stdout) told += text;
  await exit;
  // What a system prints comes before it.
  const line = told.trimEnd().split('\n').at(-1) ?? '';
  if (!line.startsWith('{"first"')) throw new Error(`${args[0]} ended before its turn. ${said}`);
  const { first, end, cpuMs } = JSON.parse(line) as { first: number; end: number; cpuMs: number };
  return { firstMs: first - begun, ms: end - begun, cpuMs };
}

function print(): void {
  const { cpu, cores, node } = machine();
  const { otherCores, load } = noise();
  console.log(`${starts} starts each, taking turns. ${cpu}, ${cores} cores, Node.js ${node}.`);
  console.log(`Others used ${otherCores} cores meanwhile; load average ${load}.\n`);
  console.log('| | first text, ms | p10 to p90 | end of the turn, ms | CPU time, ms |');
  console.log('| --- | --- | --- | --- | --- |');
  for (const [title, values] of samples) {
    const { median, p10, p90 } = statsOf(values.map(({ firstMs }) => firstMs));
    const [end, cpu] = (['ms', 'cpuMs'] as const).map((name) =>
      Math.round(statsOf(values.map((value) => value[name])).median),
    );
    const range = `${Math.round(p10)} to ${Math.round(p90)}`;
    console.log(`| ${title} | ${Math.round(median)} | ${range} | ${end} | ${cpu} |`);
  }
}
