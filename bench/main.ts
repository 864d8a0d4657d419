// `npm run bench` in the repository, or `node bench/main.ts`: measures everything and writes it down.
//   --quick           three minutes instead of 36; writes results/quick.json only
//   --only a,b        some measures only (see plan.ts; resume and branch go on from stored), --system a,b some systems
//                     only; writes nothing
//   --installed       measures what is installed as it is: no npm ci, no new copy of dist
//   --report          writes tables and plots from results/latest.json again, or else from results/quick.json
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { full, quick } from './job.ts';
import { setUp } from './lib/setup.ts';
import { type Measure, measures } from './plan.ts';
import { writeTables } from './report/document.ts';
import { drawPlots } from './report/plots.ts';
import { toText } from './report/table.ts';
import { tablesOf } from './report/tables.ts';
import type { Results } from './results.ts';
import { runAll } from './run.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    system: { type: 'string' },
    installed: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
});

const fileOf = (name: string): string => join(import.meta.dirname, 'results', `${name}.json`);

if (options.report) {
  const file = [fileOf('latest'), fileOf('quick')].find((path) => existsSync(path));
  if (file === undefined) throw new Error('There are no results to report. Run without --report.');
  publish(JSON.parse(readFileSync(file, 'utf8')) as Results);
} else {
  if (!options.installed) setUp();
  const isPart = options.only !== undefined || options.system !== undefined;
  const results = await runAll({
    scale: options.quick ? quick : full,
    quick: options.quick,
    measures: options.only === undefined ? measures : parseMeasures(options.only),
    systems: options.system?.split(','),
    // What was measured before something ended the run is not lost; `--report` shows it.
    onProgress: (found) => isPart || save(found),
  });
  for (const table of tablesOf(results)) console.log(toText(table));
  const { seconds } = results.about;
  console.log(`${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`);
  if (!isPart) save(results);
  if (!isPart && !options.quick) publish(results);
}

function save(results: Results): void {
  const file = fileOf(results.about.quick ? 'quick' : 'latest');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
}

/** What the documentation shows. */
function publish(results: Results): void {
  writeTables(tablesOf(results));
  drawPlots(results);
}

function parseMeasures(list: string): readonly Measure[] {
  const names = list.split(',');
  const unknown = names.find((name) => !measures.some((measure) => measure === name));
  if (unknown !== undefined) {
    throw new Error(`No measure "${unknown}". There are: ${measures.join(', ')}.`);
  }
  return measures.filter((measure) => names.includes(measure));
}
