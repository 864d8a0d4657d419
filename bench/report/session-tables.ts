// What sessions cost as they grow: A, B, C and F.
import type { StoredTurns } from '../measures/stored.ts';
import type { Results } from '../results.ts';
import { bytes, number, spread, times } from './format.ts';
import { counterpart, linesOf, type Measured, resultOf } from './rows.ts';
import type { Table } from './table.ts';

export function turns(results: Results): Table {
  const { lengths } = results;
  const last = lengths.at(-1) ?? 0;
  const ours = resultOf(results.turns, 'waymark', 'memory')?.times[last]?.median;
  const floor = results.floors[0]?.result?.model.median;
  return {
    name: 'turns',
    title: 'A. A turn without a disk, ms',
    columns: ['system', ...lengths.map(nth), `× Waymark at ${count(last)}`, '× floor'],
    rows: linesOf(results.turns, ({ result }) => {
      const median = result.times[last]?.median;
      return [
        ...lengths.map((length) => spread(result.times[length])),
        median === undefined ? ended(result.endedAt) : times(median, ours),
        times(median, floor),
      ];
    }),
  };
}

export function stored(results: Results): Table {
  const { lengths } = results;
  const last = lengths.at(-1) ?? 0;
  return {
    name: 'stored',
    title: 'B. A turn that is stored, ms',
    columns: [
      'system',
      ...lengths.map(nth),
      `× Waymark at ${count(last)}`,
      'floor between',
      '× floor',
      'storing alone × floor',
    ],
    rows: linesOf(results.stored, (row) => {
      const median = row.result.times[last]?.median;
      const ours = counterpart(results.stored, row)?.times[last]?.median;
      return [
        ...lengths.map((length) => spread(row.result.times[length])),
        median === undefined ? ended(row.result.endedAt) : times(median, ours),
        spread(row.result.floor?.ms),
        spread(row.result.floor?.factor),
        times(storingOf(results, row, last), row.result.floor?.ms.median),
      ];
    }),
  };
}

/** What storing adds to a turn: the time of the same turn in memory taken away. */
function storingOf(
  { turns }: Results,
  { system, result }: Measured<StoredTurns>,
  last: number,
): number | undefined {
  const median = result.times[last]?.median;
  const inMemory = resultOf(turns, system, 'memory')?.times[last]?.median;
  if (median === undefined || inMemory === undefined || median <= inMemory) return undefined;
  return median - inMemory;
}

export function storedBytes(results: Results): Table {
  const lengths = results.lengths.filter((length) => length >= 10);
  const last = lengths.at(-1) ?? 0;
  return {
    name: 'bytes',
    title: 'B. What n turns take on the disk',
    columns: [
      'system',
      ...lengths.map((n) => `${count(n)} turns`),
      `per turn of ${count(last)}`,
      '× Waymark',
    ],
    rows: linesOf(results.stored, (row) => {
      const size = row.result.bytes[last];
      return [
        ...lengths.map((length) => bytes(row.result.bytes[length])),
        bytes(size === undefined ? undefined : size / last),
        times(size, counterpart(results.stored, row)?.bytes[last]),
      ];
    }),
  };
}

export function storedQueries(results: Results): Table {
  const lengths = results.lengths.filter((length) => length >= 10);
  return {
    name: 'queries',
    title: 'B. Statements of a turn, BEGIN and COMMIT included',
    columns: ['system', ...lengths.map(nth)],
    rows: linesOf(
      results.stored.filter(({ result }) => result?.queries !== undefined),
      ({ result }) =>
        lengths.map((length) => number(result.queries?.[length]?.median ?? Number.NaN)),
    ),
  };
}

export function toolTurns(results: Results): Table {
  const most = Math.max(0, ...results.toolTurns.map(({ result }) => result?.turns ?? 0));
  return {
    name: 'tools',
    title: `B. ${most} turns with a tool`,
    columns: ['system', 'turns', 'ms of the last turns', '× Waymark', 'on disk', '× Waymark'],
    rows: linesOf(results.toolTurns, (row) => {
      const ours = counterpart(results.toolTurns, row);
      const isWhole = row.result.turns === ours?.turns;
      return [
        number(row.result.turns),
        spread(row.result.lastTurns),
        times(row.result.lastTurns.median, ours?.lastTurns.median),
        bytes(row.result.bytes),
        isWhole ? times(row.result.bytes, ours?.bytes) : '–',
      ];
    }),
  };
}

export function resume(results: Results): Table {
  return {
    name: 'resume',
    title: 'C. A fresh process opens the store, loads the long session and runs a turn',
    columns: ['system', 'turn', 'ms', '× Waymark'],
    rows: linesOf(results.resume, (row) => [
      number(row.result.turn),
      spread(row.result.ms),
      times(row.result.ms.median, counterpart(results.resume, row)?.ms.median),
    ]),
  };
}

export function branch(results: Results): Table {
  return {
    name: 'branch',
    title: 'F. A branch from the middle of the long session, and its first turn',
    columns: ['system', 'from turn', 'ms', '× Waymark', 'bytes added'],
    rows: linesOf(results.branch, (row) => [
      number(row.result.from),
      spread(row.result.ms),
      times(row.result.ms.median, counterpart(results.branch, row)?.ms.median),
      bytes(row.result.bytes),
    ]),
  };
}

const count = (length: number): string => length.toLocaleString('en');
const nth = (length: number): string => `turn ${count(length)}`;

function ended(turn: number | undefined): string {
  return turn === undefined ? '–' : `ended at turn ${turn}`;
}
