import { loadavg } from 'node:os';
import type { Scale } from './job.ts';
import { createScratch } from './lib/disk.ts';
import { machine } from './lib/machine.ts';
import { type Postgres, startPostgres } from './lib/postgres.ts';
import { commit, versions } from './lib/versions.ts';
import { measureFootprints } from './measures/footprint.ts';
import { entriesOf, type Measure } from './plan.ts';
import type { Results } from './results.ts';
import { type Cell, createRunner, type Runner } from './runner.ts';

export interface RunOptions {
  readonly scale: Scale;
  readonly quick: boolean;
  readonly measures: readonly Measure[];
  /** Only these. @default all */
  readonly systems?: readonly string[] | undefined;
  /** Hears what there is so far, each time that a measure is through. */
  readonly onProgress: (results: Results) => void;
}

/** Runs the benchmarks, one process after the other. Whatever fails, the rest is measured. */
export async function runAll(options: RunOptions): Promise<Results> {
  const { scale, quick, onProgress } = options;
  const started = performance.now();
  const load = loadavg()[0] ?? 0;
  const measured = commit();
  const deadline = started + scale.seconds * 1000;
  const scratch = createScratch();
  const postgres = await start(scratch.path);
  const runner = createRunner({ scale, deadline, directory: scratch.path, postgres });
  const rows = new Map<Measure, unknown[]>();
  const soFar = (): Results => ({
    about: {
      date: new Date().toISOString(),
      commit: measured,
      quick,
      seconds: Math.round((performance.now() - started) / 1000),
      machine: machine(),
      load: [load, loadavg()[0] ?? 0],
      versions: versions(postgres?.version),
    },
    lengths: scale.lengths,
    ...foundOf(rows),
  });
  try {
    for await (const measure of measureAll(options, runner, deadline)) {
      const known = rows.get(measure.name) ?? [];
      rows.set(measure.name, [...known, ...measure.rows]);
      onProgress(soFar());
    }
    return soFar();
  } finally {
    await stop(postgres);
    scratch.remove();
  }
}

interface Measured {
  readonly name: Measure;
  readonly rows: readonly unknown[];
}

async function* measureAll(
  { scale, measures, systems }: RunOptions,
  runner: Runner,
  deadline: number,
): AsyncGenerator<Measured> {
  const cellsOf = (measure: Cell['measure']): readonly Cell[] =>
    entriesOf(measure)
      .map(([system, variant]) => ({ measure, system, variant }))
      .filter(({ system }) => !systems || system === '' || systems.includes(system));
  for (const measure of measures) {
    if (measure === 'footprint') {
      yield { name: measure, rows: measureFootprints({ ...scale, deadline, systems }) };
    } else if (measure !== 'resume' && measure !== 'branch') {
      for (const cell of cellsOf(measure)) {
        yield { name: measure, rows: [await runner.run(cell)] };
        if (measure !== 'stored') continue;
        // The long session is there now: it is resumed and branched at once, and makes room for the next one.
        for (const again of ['resume', 'branch'] as const) {
          if (!measures.includes(again)) continue;
          yield { name: again, rows: [await runner.run({ ...cell, measure: again })] };
        }
        await runner.cleanUp(cell);
      }
    }
  }
}

// What is in a measure's rows is what its own file says; nobody else puts rows there.
function foundOf(rows: ReadonlyMap<Measure, unknown[]>): Omit<Results, 'about' | 'lengths'> {
  const of = (measure: Measure): never[] => (rows.get(measure) ?? []) as never[];
  return {
    floors: of('floors'),
    turns: of('turns'),
    stored: of('stored'),
    toolTurns: of('tool-turns'),
    resume: of('resume'),
    branch: of('branch'),
    footprint: of('footprint'),
    idle: of('idle'),
    http: of('http'),
    paced: of('paced'),
    background: of('background'),
  };
}

/** Nothing but what needs it fails without it. */
async function start(directory: string): Promise<Postgres | undefined> {
  const timeout = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error('did not start within a minute')), 60_000).unref();
  });
  try {
    return await Promise.race([startPostgres(directory), timeout]);
  } catch (error) {
    process.stderr.write(`Postgres: failed: ${String(error)}\n`);
    return undefined;
  }
}

async function stop(postgres: Postgres | undefined): Promise<void> {
  const timeout = new Promise((resolve) => setTimeout(resolve, 10_000).unref());
  await Promise.race([postgres?.stop().catch(() => {}), timeout]);
}
