import type { Stats } from '../lib/stats.ts';
import type { Load } from '../measures/http.ts';
import type { Results, Row } from '../results.ts';
import { bytes, number, spread, times } from './format.ts';
import type { Table } from './table.ts';

/** All tables of a run that have something to show. */
export function tablesOf(results: Results): readonly Table[] {
  return [
    about(results),
    floors(results),
    turns(results),
    stored(results),
    storedBytes(results),
    toolTurns(results),
    resume(results),
    branch(results),
    footprint(results),
    idle(results),
    http(results, 'turns', 'G. HTTP, answers of 20 chunks'),
    http(results, 'streams', 'G. HTTP, answers of 1,000 chunks'),
    background(results),
  ].filter(({ rows }) => rows.length > 0);
}

function about({ about }: Results): Table {
  const { machine, versions, date, commit, load } = about;
  const rows = [
    ['date', `${date.slice(0, 10)}, commit ${commit}${about.quick ? ', quick' : ''}`],
    ['machine', `${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.os}`],
    ['load average', `${load.map(number).join(' at the start, ')} at the end`],
    ...Object.entries(versions),
  ];
  return { name: 'about', title: 'About this run', columns: ['what', 'value'], rows };
}

function floors(results: Results): Table {
  const found = results.floors[0]?.result;
  const names = {
    json: 'JSON of what a turn adds',
    model: "the model's stream, read",
    sqliteCommit: '`node:sqlite`, one row, one commit',
    sqliteFullCommit: '`node:sqlite` with synchronous full',
    postgresCommit: '`pg`, one row, one commit',
    fileAppend: 'one line to a file',
    fileSyncedAppend: 'one line to a file, and fdatasync',
    sqliteTurn: '`node:sqlite`, accept and save by hand',
    sqliteFullTurn: '`node:sqlite` full, accept and save by hand',
    postgresTurn: '`pg`, accept and save by hand',
  };
  const rows = Object.entries(names).flatMap(([key, name]) => {
    const stats = found?.[key as keyof typeof names];
    return stats === undefined ? [] : [[name, spread(stats), number(1000 / stats.median)]];
  });
  return { name: 'floors', title: 'I. Floors', columns: ['what', 'ms', 'per second'], rows };
}

function turns(results: Results): Table {
  const { lengths } = results;
  const last = lengths.at(-1) ?? 0;
  const ours = of(results.turns, 'waymark', 'memory')?.times[last]?.median;
  const floor = results.floors[0]?.result?.model.median;
  return {
    name: 'turns',
    title: 'A. A turn without a disk, ms',
    columns: ['system', ...lengths.map(nth), `× Waymark at ${last}`, `× floor at ${last}`],
    rows: results.turns.map((row) => {
      const median = row.result?.times[last]?.median;
      return [
        row.title,
        ...lengths.map((length) => spread(row.result?.times[length])),
        times(median, ours),
        times(median, floor),
      ];
    }),
  };
}

function stored(results: Results): Table {
  const { lengths } = results;
  const last = lengths.at(-1) ?? 0;
  return {
    name: 'stored',
    title: 'B. A turn that is stored, ms',
    columns: ['system', ...lengths.map(nth), `× Waymark at ${last}`, `× floor at ${last}`],
    rows: results.stored.map((row) => {
      const median = row.result?.times[last]?.median;
      const ours = counterpart(results.stored, row)?.result?.times[last]?.median;
      return [
        row.title,
        ...lengths.map((length) => spread(row.result?.times[length])),
        median === undefined ? ended(row.result?.endedAt) : times(median, ours),
        times(median, floorOf(results, row.store)),
      ];
    }),
  };
}

function storedBytes(results: Results): Table {
  const lengths = results.lengths.filter((length) => length >= 10);
  const last = lengths.at(-1) ?? 0;
  return {
    name: 'bytes',
    title: 'B. What n turns take on the disk',
    columns: ['system', ...lengths.map((n) => `${n} turns`), `a turn of ${last}`, '× Waymark'],
    rows: results.stored.map((row) => {
      const size = row.result?.bytes[last];
      return [
        row.title,
        ...lengths.map((length) => bytes(row.result?.bytes[length])),
        bytes(size === undefined ? undefined : size / last),
        times(size, counterpart(results.stored, row)?.result?.bytes[last]),
      ];
    }),
  };
}

function toolTurns(results: Results): Table {
  const count = Math.max(0, ...results.toolTurns.map(({ result }) => result?.turns ?? 0));
  return {
    name: 'tools',
    title: `B. ${count} turns with a tool`,
    columns: ['system', 'turns', 'ms of the last ones', '× Waymark', 'on the disk', '× Waymark'],
    rows: results.toolTurns.map((row) => {
      const ours = counterpart(results.toolTurns, row)?.result;
      return [
        row.title,
        number(row.result?.turns ?? Number.NaN),
        spread(row.result?.lastTurns),
        times(row.result?.lastTurns.median, ours?.lastTurns.median),
        bytes(row.result?.bytes),
        times(row.result?.bytes, ours?.bytes),
      ];
    }),
  };
}

function resume(results: Results): Table {
  return {
    name: 'resume',
    title: 'C. A fresh process opens the store, loads the long session and runs a turn',
    columns: ['system', 'turn', 'ms', '× Waymark'],
    rows: results.resume.map((row) => {
      const ours = counterpart(results.resume, row)?.result?.ms.median;
      return [
        row.title,
        number(row.result?.turn ?? Number.NaN),
        spread(row.result?.ms),
        times(row.result?.ms.median, ours),
      ];
    }),
  };
}

function branch(results: Results): Table {
  return {
    name: 'branch',
    title: 'F. A branch from the middle of the long session, and its first turn',
    columns: ['system', 'from turn', 'ms', '× Waymark', 'bytes added'],
    rows: results.branch.map((row) => {
      const ours = counterpart(results.branch, row)?.result?.ms.median;
      return [
        row.title,
        number(row.result?.from ?? Number.NaN),
        spread(row.result?.ms),
        times(row.result?.ms.median, ours),
        bytes(row.result?.bytes),
      ];
    }),
  };
}

function footprint(results: Results): Table {
  const bare = results.footprint[0];
  const ours = results.footprint.find(({ title }) => title === 'Waymark + SQLite');
  return {
    name: 'footprint',
    title: 'D. What it costs to have it',
    columns: ['what', 'import, ms', '× Waymark', 'memory added', 'installed', 'packages'],
    rows: results.footprint.map((row) => [
      row.title,
      spread(row.importMs),
      row === bare ? '–' : times(row.importMs.median, ours?.importMs.median),
      row === bare
        ? bytes(row.memoryBytes.median)
        : bytes(row.memoryBytes.median - (bare?.memoryBytes.median ?? 0)),
      bytes(row.installedBytes),
      number(row.packages),
    ]),
  };
}

function idle(results: Results): Table {
  const ours = of(results.idle, 'waymark', 'memory')?.bytesPerSession;
  return {
    name: 'idle',
    title: 'E. Memory of an open, idle session of five turns (3,000 characters)',
    columns: ['system', 'sessions', 'a session', '× Waymark'],
    rows: results.idle.map(({ title, result }) => [
      title,
      number(result?.sessions ?? Number.NaN),
      bytes(result?.bytesPerSession),
      times(result?.bytesPerSession, ours),
    ]),
  };
}

function http(results: Results, which: 'turns' | 'streams', title: string): Table {
  const loads = (row: Row<NonNullable<Results['http'][number]['result']>>): readonly Load[] =>
    row.result?.[which] ?? [];
  const bare = results.http.find(({ variant }) => variant === 'bare');
  const clients = (bare ?? results.http[0])?.result?.[which].map((load) => load.clients) ?? [];
  const plural = (count: number): string => (count === 1 ? '1 client' : `${count} clients`);
  const base = bare && loads(bare);
  return {
    name: `http-${which}`,
    title: `${title}: chunks per second and share of the bare server; ms to the first chunk`,
    columns: [
      'server',
      ...clients.map(plural),
      'first chunk, 1 client',
      'added',
      'CPU a chunk, µs',
    ],
    rows: results.http.map((row) => {
      const first = loads(row)[0]?.firstChunk;
      const bareFirst = base?.[0]?.firstChunk.median;
      return [
        row.title,
        ...loads(row).map(({ chunksPerSecond }, at) => {
          const share = (100 * chunksPerSecond) / (base?.[at]?.chunksPerSecond ?? Number.NaN);
          return `${number(chunksPerSecond)} (${number(share)} %)`;
        }),
        spread(first),
        first && bareFirst !== undefined && row !== bare ? number(first.median - bareFirst) : '–',
        number(loads(row).at(-1)?.cpuPerChunk ?? Number.NaN),
      ];
    }),
  };
}

function background(results: Results): Table {
  const cell = (stats: Stats | undefined): string => spread(stats);
  return {
    name: 'background',
    title: 'H. Runs in the background, ms',
    columns: [
      'system',
      'detach until the caller may go',
      'abort until the signal in another process',
      'kill -9 until another process goes on',
    ],
    rows: results.background.map(({ title, system, result }) => [
      title,
      cell(result?.detach),
      cell(result?.abort),
      system === 'waymark' ? cell(result?.takeover) : 'never: the run is lost',
    ]),
  };
}

const nth = (length: number): string => `turn ${length.toLocaleString('en')}`;

function ended(turn: number | undefined): string {
  return turn === undefined ? '–' : `ended at turn ${turn}`;
}

function of<Result>(
  rows: readonly Row<Result>[],
  system: string,
  variant: string,
): Result | undefined {
  return rows.find((row) => row.system === system && row.variant === variant)?.result;
}

/** Our own variant on the same kind of store. */
function counterpart<Result>(
  rows: readonly Row<Result>[],
  { store }: Row<Result>,
): Row<Result> | undefined {
  return rows.find((row) => row.system === 'waymark' && row.store === store);
}

function floorOf(results: Results, store: Row<unknown>['store']): number | undefined {
  const found = results.floors[0]?.result;
  switch (store) {
    case 'sqlite':
      return found?.sqliteTurn.median;
    case 'sqlite-full':
      return found?.sqliteFullTurn.median;
    case 'postgres':
      return found?.postgresTurn.median;
    case 'file':
      return found?.fileAppend.median;
    case 'file-synced':
      return found?.fileSyncedAppend.median;
    case undefined:
      return undefined;
  }
}
