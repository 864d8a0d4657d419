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

const bare: Footprint = { title: 'bare Node', packages: [], imports: [] };

/** Measures all of them, and Node with nothing. */
export function measureFootprints(processes: number): readonly FootprintCost[] {
  const listed = Object.values(systems).flatMap(({ footprints }) => footprints);
  return [bare, ...listed].flatMap((footprint) => {
    const samples = importSamples(footprint.imports, processes);
    if (samples === undefined) return [];
    const folders = foldersOf(footprint.packages);
    return [
      {
        title: footprint.title,
        importMs: statsOf(samples.map(({ ms }) => ms)),
        memoryBytes: statsOf(samples.map(({ memory }) => memory)),
        installedBytes: folders.reduce((sum, folder) => sum + allocated(folder), 0),
        packages: folders.length,
      },
    ];
  });
}

interface Sample {
  readonly ms: number;
  readonly memory: number;
}

function importSamples(imports: readonly string[], processes: number): Sample[] | undefined {
  const program = `
    const started = performance.now();
    for (const name of ${JSON.stringify(imports)}) await import(name);
    const ms = performance.now() - started;
    console.log(JSON.stringify({ ms, memory: process.memoryUsage.rss() }));
    process.exit(0);`;
  const samples: Sample[] = [];
  // The first one only brings the files into the page cache.
  for (let at = 0; at <= processes; at++) {
    const { stdout, status } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', program],
      {
        cwd: benchRoot,
        encoding: 'utf8',
        env: { ...process.env, OPENAI_API_KEY: 'none', NODE_DISABLE_COMPILE_CACHE: '1' },
      },
    );
    if (status !== 0) return undefined;
    if (at > 0) samples.push(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Sample);
  }
  return samples;
}

// Waymark and what goes with it are the repository's own; the others are installed here.
function foldersOf(packages: readonly string[]): readonly string[] {
  if (!packages.includes('waymark')) return closureOf(readInstalled(benchRoot), packages);
  const own = ['@cfworker/json-schema', '@standard-schema/spec', 'mutative', 'valibot'];
  const others = packages.filter((name) => name !== 'waymark');
  const place = join(benchRoot, 'node_modules/waymark');
  return [place, ...closureOf(readInstalled(repository), [...own, ...others])];
}
