import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Job, Scale } from './job.ts';
import type { Postgres } from './lib/postgres.ts';
import { type Outcome, runJob } from './lib/run-job.ts';
import { repository } from './lib/setup.ts';
import { statsOf } from './lib/stats.ts';
import type { Resume } from './measures/resume.ts';
import type { Resumed, Row } from './results.ts';
import { servers } from './servers/server.ts';
import { variants } from './systems/variants.ts';

/** One cell of the plan: a measure of one way of using a system. */
export type Cell = Pick<Job, 'measure' | 'system' | 'variant'>;

/** Measures cells within the time there is. */
export interface Runner {
  /** Never rejects: what went wrong is in the row. */
  run(cell: Cell): Promise<Row<unknown>>;
  /** Removes what a cell and those that went on from it have stored. */
  cleanUp(cell: Cell): Promise<void>;
}

export interface RunnerOptions {
  readonly scale: Scale;
  /** When all must be done, on the clock of `performance.now()`. */
  readonly deadline: number;
  readonly directory: string;
  readonly postgres: Postgres | undefined;
}

export function createRunner(options: RunnerOptions): Runner {
  const { directory, postgres } = options;
  return {
    async run(cell) {
      const started = performance.now();
      const outcome = withoutPaths(
        await measure(cell, options).catch((error: Error) => ({ error: error.message })),
        directory,
      );
      const title = titleOf(cell);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      const said = 'error' in outcome ? `failed: ${outcome.error}` : `${seconds} s`;
      process.stderr.write(`${cell.measure}, ${title}: ${said}\n`);
      const { store, note } = variants[cell.system]?.[cell.variant] ?? {};
      const { system, variant } = cell;
      return { system, variant, title, ...(store && { store }), ...(note && { note }), ...outcome };
    },
    async cleanUp(cell) {
      rmSync(join(directory, nameOf(cell)), { recursive: true, force: true });
      if (needsPostgres(cell)) await postgres?.dropDatabase(nameOf(cell)).catch(() => {});
    },
  };
}

// Results are for others to read: where they were taken is nobody's business.
function withoutPaths(outcome: Outcome<unknown>, directory: string): Outcome<unknown> {
  if (!('error' in outcome)) return outcome;
  const error = outcome.error
    .replaceAll(`file://${repository}`, '.')
    .replaceAll(repository, '.')
    .replaceAll(directory, 'scratch');
  return { ...outcome, error };
}

async function measure(cell: Cell, options: RunnerOptions): Promise<Outcome<unknown>> {
  const place = await placeOf(cell, options);
  if (cell.measure !== 'resume') return await runOnce({ ...cell, place }, options);
  const found: Resume[] = [];
  for (let at = 0; at < options.scale.processes; at++) {
    const outcome = await runOnce<Resume>({ ...cell, place }, options);
    if ('error' in outcome) {
      // What the processes before it found still holds.
      if (found.length === 0) return outcome;
      break;
    }
    found.push(outcome.result);
  }
  const resumed: Resumed = { turn: found[0]?.turn ?? 0, ms: statsOf(found.map(({ ms }) => ms)) };
  return { result: resumed };
}

async function runOnce<Result>(
  job: Omit<Job, 'scale'>,
  { scale, deadline }: RunnerOptions,
): Promise<Outcome<Result>> {
  const left = deadline - performance.now();
  if (left < 1000) return { error: 'no time was left' };
  // A long session is ended in time for its process to say how far it came.
  const budget = Math.min(scale.budget, left * 0.8);
  const limit = Math.min(scale.cellSeconds * 1000, left);
  return await runJob<Result>({ ...job, scale: { ...scale, budget } }, limit);
}

// What others left behind is found where they left it.
async function placeOf(cell: Cell, { directory, postgres }: RunnerOptions): Promise<Job['place']> {
  const name = nameOf(cell);
  const folder = join(directory, name);
  const isAgain = cell.measure === 'resume' || cell.measure === 'branch';
  mkdirSync(folder, { recursive: true });
  const place = { directory: folder, tools: cell.measure === 'tool-turns' };
  if (!needsPostgres(cell)) return { ...place, postgres: '' };
  if (postgres === undefined) throw new Error('Postgres did not start');
  const database = isAgain ? postgres.address(name) : await postgres.createDatabase(name);
  return { ...place, postgres: database };
}

function nameOf({ measure, system, variant }: Cell): string {
  const isAgain = measure === 'resume' || measure === 'branch';
  return `${isAgain ? 'stored' : measure}_${system}_${variant}`.replace(/\W/g, '_');
}

function needsPostgres({ measure, variant }: Cell): boolean {
  return measure === 'floors' || variant.endsWith('postgres');
}

function titleOf({ measure, system, variant }: Cell): string {
  if (measure === 'floors') return 'floors';
  if (measure === 'http' || measure === 'paced') return servers[variant]?.title ?? variant;
  return variants[system]?.[variant]?.title ?? `${system}, ${variant}`;
}
