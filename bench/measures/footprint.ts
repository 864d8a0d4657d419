// D: what it costs to have a system: time and memory to import it in a fresh process, and what npm installs.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { allocated } from '../lib/disk.ts';
import { closureOf, readInstalled } from '../lib/lock.ts';
import { benchRoot, repository } from '../lib/setup.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { type Footprint, systems } from '../systems/all.ts';

export interface FootprintCost {
  readonly title: string;
  /** Milliseconds of the import alone. */
  readonly importMs: Stats;
  /** Resident memory of the process after it. */
  readonly memoryBytes: Stats;
  readonly installedBytes: number;
  readonly packages: number;
}

/** Why there are no figures for one. */
export interface FootprintFailure {
  readonly title: string;
  readonly error: string;
}

export interface FootprintOptions {
  /** Starts of each; they take turns, so that a busy moment of the machine falls on all of them. */
  readonly processes: number;
  /** When to end, on the clock of `performance.now()`. */
  readonly deadline: number;
  /** Only these. @default all */
  readonly systems?: readonly string[] | undefined;
}

const bare: Footprint = { title: 'bare Node', packages: [], imports: [] };

/** Measures all of them, and Node with nothing. */
export function measureFootprints(
  options: FootprintOptions,
): readonly (FootprintCost | FootprintFailure)[] {
  const { processes, deadline } = options;
  const listed = Object.entries(systems)
    .filter(([name]) => options.systems?.includes(name) ?? true)
    .flatMap(([, { footprints }]) => footprints);
  const entries = [bare, ...listed].map((footprint) => ({ footprint, samples: [] as Sample[] }));
  const errors = new Map<Footprint, string>();
  // The first round only brings the files into the page cache.
  for (let round = 0; round <= processes; round++) {
    for (const { footprint, samples } of entries) {
      if (errors.has(footprint) || performance.now() > deadline) continue;
      try {
        const sample = importOnce(footprint.imports);
        if (round > 0) samples.push(sample);
      } catch (error) {
        errors.set(footprint, error instanceof Error ? error.message : String(error));
      }
    }
  }
  return entries.map(({ footprint, samples }) => {
    const { title } = footprint;
    const error = errors.get(footprint);
    if (error !== undefined || samples.length === 0) {
      return { title, error: error ?? 'no time was left' };
    }
    const folders = foldersOf(footprint.packages);
    return {
      title,
      importMs: statsOf(samples.map(({ ms }) => ms)),
      memoryBytes: statsOf(samples.map(({ memory }) => memory)),
      installedBytes: folders.reduce((sum, folder) => sum + allocated(folder), 0),
      packages: folders.length,
    };
  });
}

interface Sample {
  readonly ms: number;
  readonly memory: number;
}

function importOnce(imports: readonly string[]): Sample {
  const program = `
    const started = performance.now();
    for (const name of ${JSON.stringify(imports)}) await import(name);
    const ms = performance.now() - started;
    console.log(JSON.stringify({ ms, memory: process.memoryUsage.rss() }));
    process.exit(0);`;
  const { stdout, stderr, status, error } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program],
    {
      cwd: benchRoot,
      encoding: 'utf8',
      timeout: 20_000,
      env: { ...process.env, OPENAI_API_KEY: 'none', NODE_DISABLE_COMPILE_CACHE: '1' },
    },
  );
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.slice(-300).replaceAll(repository, '.'));
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Sample;
}

// Waymark and what goes with it are the repository's own; the others are installed here.
function foldersOf(packages: readonly string[]): readonly string[] {
  if (!packages.includes('waymark')) return closureOf(readInstalled(benchRoot), packages);
  const own = ['@cfworker/json-schema', '@standard-schema/spec', 'mutative', 'valibot'];
  const others = packages.filter((name) => name !== 'waymark');
  const place = join(benchRoot, 'node_modules/waymark');
  return [place, ...closureOf(readInstalled(repository), [...own, ...others])];
}
