// What the README shows of a run: one line a question, one column a system.
import type { Stats } from '../lib/stats.ts';
import type { Results, Row } from '../results.ts';
import { bytes, number } from './format.ts';
import { isWeighed, resultOf } from './rows.ts';
import type { Table } from './table.ts';

interface Column {
  readonly title: string;
  readonly system: string;
  /** The variants that stand for it, and what their store is called. */
  readonly inMemory: string;
  readonly onDisk: readonly (readonly [variant: string, store: string])[];
  /** The line of the footprints. */
  readonly footprint: string;
}

const columns: readonly Column[] = [
  {
    title: 'Waymark',
    system: 'waymark',
    inMemory: 'memory',
    onDisk: [
      ['sqlite', 'SQLite'],
      ['postgres', 'Postgres'],
    ],
    footprint: 'Waymark + SQLite',
  },
  {
    title: 'Genkit',
    system: 'genkit',
    inMemory: 'memory',
    onDisk: [['file', 'files']],
    footprint: 'Genkit (agents)',
  },
  {
    title: 'LangGraph.js',
    system: 'langgraph',
    inMemory: 'memory',
    onDisk: [
      ['sqlite', 'SQLite'],
      ['postgres', 'Postgres'],
    ],
    footprint: 'LangGraph + SQLite',
  },
  {
    title: 'Mastra',
    system: 'mastra',
    inMemory: 'memory',
    onDisk: [['libsql', 'libSQL']],
    footprint: 'Mastra + libSQL',
  },
  {
    title: 'OpenAI Agents',
    system: 'openai',
    inMemory: 'memory',
    onDisk: [],
    footprint: 'OpenAI Agents',
  },
  {
    title: 'AI SDK',
    system: 'ai',
    inMemory: 'stream-text',
    onDisk: [],
    footprint: 'AI SDK',
  },
];

export function headline(results: Results): Table {
  const lengths = results.lengths.filter((length) => length !== 10);
  const last = results.lengths.at(-1) ?? 0;
  const count = (length: number): string => length.toLocaleString('en');
  const at = lengths.map(count).join(' / ');
  const perLength = (times: Readonly<Record<number, Stats>> = {}): string =>
    lengths.map((length) => number(times[length]?.median ?? Number.NaN)).join(' / ');
  const weighed = results.footprint.filter(isWeighed);
  const onDisk =
    <Result>(rows: readonly Row<Result>[], show: (result: Result) => string) =>
    ({ system, onDisk }: Column): string => {
      const found = onDisk.flatMap(([variant, store]) => {
        const result = resultOf(rows, system, variant);
        return result === undefined ? [] : [`${show(result)} (${store})`];
      });
      return found.join(', ') || '–';
    };
  const lines: readonly (readonly [string, (column: Column) => string])[] = [
    [
      `a turn in memory, at turn ${at}, ms`,
      ({ system, inMemory }) => {
        const found = resultOf(results.turns, system, inMemory);
        return found === undefined ? '–' : perLength(found.times);
      },
    ],
    [`a stored turn, at turn ${at}, ms`, onDisk(results.stored, ({ times }) => perLength(times))],
    [
      `size on disk after ${count(last)} turns`,
      onDisk(results.stored, (result) => bytes(result.bytes[last])),
    ],
    [
      `resumed after ${count(last)} turns in a fresh process, ms`,
      onDisk(results.resume, ({ ms, turn }) =>
        turn > last ? number(ms.median) : `${number(ms.median)} after ${count(turn - 1)}`,
      ),
    ],
    [
      `branched from turn ${count(last / 2)}, ms`,
      onDisk(results.branch, ({ ms }) => number(ms.median)),
    ],
    [
      'import time, ms; installed size',
      ({ footprint }) => {
        const found = weighed.find(({ title }) => title === footprint);
        return found ? `${number(found.importMs.median)}; ${bytes(found.installedBytes)}` : '–';
      },
    ],
  ];
  return {
    name: 'headline',
    title: 'In short',
    columns: ['', ...columns.map(({ title }) => title)],
    rows: lines.map(([name, cell]) => [name, ...columns.map(cell)]),
  };
}
