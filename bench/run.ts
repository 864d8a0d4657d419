import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import type { Job, Scale } from './job.ts';
import { createScratch } from './lib/disk.ts';
import { machine } from './lib/machine.ts';
import { type Postgres, startPostgres } from './lib/postgres.ts';
import { type Outcome, runJob } from './lib/run-job.ts';
import { repository, versionOf } from './lib/setup.ts';
import { statsOf } from './lib/stats.ts';
import { measureFootprints } from './measures/footprint.ts';
import type { Resume } from './measures/resume.ts';
import { entriesOf, type Measure } from './plan.ts';
import type { Results, Resumed, Row } from './results.ts';
import { servers } from './servers/server.ts';
import { systems } from './systems/all.ts';
import { variants } from './systems/variants.ts';

export interface RunOptions {
  readonly scale: Scale;
  readonly quick: boolean;
  readonly measures: readonly Measure[];
  /** Only these. @default all */
  readonly systems?: readonly string[] | undefined;
}

/** Runs the benchmarks, one process after the other. */
export async function runAll(options: RunOptions): Promise<Results> {
  const started = performance.now();
  const startLoad = loadavg();
  const scratch = createScratch();
  const postgres = await startPostgres(scratch.path);
  try {
    const { scale } = options;
    const run = <Result>(measure: Job['measure']): Promise<readonly Row<Result>[]> =>
      runMeasure(measure, { ...options, postgres, directory: scratch.path });
    const found = {
      floors: await run<never>('floors'),
      turns: await run<never>('turns'),
      stored: await run<never>('stored'),
      toolTurns: await run<never>('tool-turns'),
      resume: await run<Resumed>('resume'),
      branch: await run<never>('branch'),
      footprint: options.measures.includes('footprint') ? measureFootprints(scale.processes) : [],
      idle: await run<never>('idle'),
      http: await run<never>('http'),
      background: await run<never>('background'),
    };
    return {
      about: {
        date: new Date().toISOString(),
        commit: commit(),
        quick: options.quick,
        seconds: Math.round((performance.now() - started) / 1000),
        machine: machine(),
        load: [startLoad[0] ?? 0, loadavg()[0] ?? 0],
        versions: versions(postgres),
      },
      lengths: scale.lengths,
      ...found,
    };
  } finally {
    await postgres.stop();
    scratch.remove();
  }
}

interface Context extends RunOptions {
  readonly postgres: Postgres;
  readonly directory: string;
}

async function runMeasure<Result>(
  measure: Job['measure'],
  context: Context,
): Promise<readonly Row<Result>[]> {
  if (!context.measures.includes(measure)) return [];
  const rows: Row<Result>[] = [];
  for (const [system, variant] of entriesOf(measure)) {
    if (context.systems && system !== '' && !context.systems.includes(system)) continue;
    const job = { measure, system, variant, scale: context.scale };
    const place = await placeOf(job, context);
    const outcome = await runRepeatedly<Result>({ ...job, place });
    const title = titleOf(job);
    const { store, note } = variants[system]?.[variant] ?? {};
    if ('error' in outcome) process.stderr.write(`${measure}, ${title}: ${outcome.error}\n`);
    else process.stderr.write(`${measure}, ${title}\n`);
    rows.push({
      system,
      variant,
      title,
      ...(store && { store }),
      ...(note && { note }),
      ...outcome,
    });
  }
  return rows;
}

// What others left behind is found where they left it.
async function placeOf(
  { measure, system, variant }: Omit<Job, 'place' | 'scale'>,
  { directory, postgres }: Context,
): Promise<Job['place']> {
  const isAgain = measure === 'resume' || measure === 'branch';
  const name = `${isAgain ? 'stored' : measure}_${system}_${variant}`.replace(/\W/g, '_');
  const folder = join(directory, name);
  mkdirSync(folder, { recursive: true });
  const database = isAgain ? postgres.address(name) : await postgres.createDatabase(name);
  return { directory: folder, postgres: database, tools: measure === 'tool-turns' };
}

async function runRepeatedly<Result>(job: Job): Promise<Outcome<Result>> {
  if (job.measure !== 'resume') return await runJob<Result>(job);
  const found: Resume[] = [];
  for (let at = 0; at < job.scale.processes; at++) {
    const outcome = await runJob<Resume>(job);
    if ('error' in outcome) return outcome;
    found.push(outcome.result);
  }
  const resumed: Resumed = { turn: found[0]?.turn ?? 0, ms: statsOf(found.map(({ ms }) => ms)) };
  return { result: resumed as Result };
}

function titleOf({ measure, system, variant }: Omit<Job, 'place' | 'scale'>): string {
  if (measure === 'floors') return 'floors';
  if (measure === 'http') return servers[variant]?.title ?? variant;
  return variants[system]?.[variant]?.title ?? `${system}, ${variant}`;
}

function versions({ version }: Postgres): Results['about']['versions'] {
  const packages = Object.values(systems).flatMap((system) => system.packages);
  return {
    node: process.versions.node,
    sqlite: process.versions.sqlite ?? 'none',
    postgres: version,
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  };
}

function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', '--short', 'HEAD');
  } catch {
    return 'unknown';
  }
}
