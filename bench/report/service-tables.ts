// The machine, and what a system costs besides its turns: D, E, G, H and I.
import type { Noise } from '../lib/machine.ts';
import type { Load } from '../measures/http.ts';
import type { PacedLoad } from '../measures/paced.ts';
import type { Results } from '../results.ts';
import { bytes, number, spread, times } from './format.ts';
import { failed, isWeighed, linesOf, resultOf } from './rows.ts';
import type { Table } from './table.ts';

export function about({ about }: Results): Table {
  const { machine, versions, date, commit, load, seconds } = about;
  const rows = [
    ['date', `${date.slice(0, 10)}, commit ${commit}${about.quick ? ', quick' : ''}`],
    ['machine', `${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.os}`],
    ['load average', `${load.map(number).join(' at the start, ')} at the end`],
    ['time taken', `${Math.floor(seconds / 60)} min ${seconds % 60} s`],
    ...Object.entries(versions),
  ];
  return { name: 'about', title: 'About this run', columns: ['what', 'value'], rows };
}

const floorNames = {
  json: 'JSON of what a turn adds',
  model: "the model's stream, read",
  sqliteCommit: '`node:sqlite`, one row, one commit',
  sqliteFullCommit: '`node:sqlite` with synchronous full, one row, one commit',
  postgresCommit: '`pg`, one row, one commit',
  fileAppend: 'one line to an open file',
  fileSyncedAppend: 'one line to an open file, and fdatasync',
  sqliteTurn: 'a turn by hand on `node:sqlite`',
  sqliteFullTurn: 'a turn by hand on `node:sqlite`, the disk awaited',
  postgresTurn: 'a turn by hand on `pg`',
  fileTurn: 'a turn by hand on files',
  fileSyncedTurn: 'a turn by hand on files, the disk awaited',
};

export function floors(results: Results): Table {
  const columns = ['what', 'ms', 'per second'];
  const row = results.floors[0];
  if (row?.error !== undefined) {
    return { name: 'floors', title: 'I. Floors', columns, rows: [failed('floors', row.error)] };
  }
  const rows = Object.entries(floorNames).flatMap(([key, name]) => {
    const stats = row?.result?.[key as keyof typeof floorNames];
    return stats === undefined ? [] : [[name, spread(stats), number(1000 / stats.median)]];
  });
  return { name: 'floors', title: 'I. Floors', columns, rows };
}

export function footprint(results: Results): Table {
  const weighed = results.footprint.filter(isWeighed);
  const bare = weighed.find(({ title }) => title === 'bare Node');
  const ours = weighed.find(({ title }) => title === 'Waymark + SQLite');
  return {
    name: 'footprint',
    title: 'D. What it costs to have it',
    columns: ['what', 'import, ms', '× Waymark', 'memory added', 'installed', 'packages'],
    rows: results.footprint.map((row) => {
      if (!isWeighed(row)) return failed(row.title, row.error);
      const added = row.memoryBytes.median - (row === bare ? 0 : (bare?.memoryBytes.median ?? 0));
      return [
        row.title,
        spread(row.importMs),
        row === bare ? '–' : times(row.importMs.median, ours?.importMs.median),
        bytes(added),
        bytes(row.installedBytes),
        number(row.packages),
      ];
    }),
  };
}

export function idle(results: Results): Table {
  const ours = resultOf(results.idle, 'waymark', 'memory')?.bytesPerSession;
  return {
    name: 'idle',
    title: 'E. Memory of an open, idle session of five turns (3,000 characters)',
    columns: ['system', 'sessions', 'per session', '× Waymark'],
    rows: linesOf(results.idle, ({ result }) => [
      number(result.sessions),
      bytes(result.bytesPerSession),
      times(result.bytesPerSession, ours),
    ]),
  };
}

export function http(results: Results, which: 'turns' | 'streams', title: string): Table {
  const bare = resultOf(results.http, '', 'bare')?.[which];
  const rows = results.http.filter(({ error, result }) => error !== undefined || result?.[which]);
  const clients = (bare ?? rows[0]?.result?.[which] ?? []).map((load) => load.clients);
  const plural = (count: number): string => (count === 1 ? '1 client' : `${count} clients`);
  return {
    name: `http-${which}`,
    title,
    columns: [
      'server',
      ...clients.map(plural),
      'first chunk, 1 client',
      'added',
      'CPU per chunk, µs',
    ],
    rows: linesOf(rows, (row) => httpCells(row.result[which] ?? [])),
  };
}

function httpCells(loads: readonly Load[]): readonly string[] {
  const [single] = loads;
  return [
    ...loads.map(({ chunksPerSecond, bare }) => {
      const share = 100 * (bare?.share.median ?? 1);
      return `${number(chunksPerSecond)} (${number(share)} %)`;
    }),
    spread(single?.firstChunk),
    single?.bare === undefined ? '–' : number(single.bare.addedToFirst.median),
    number(loads.at(-1)?.cpuPerChunk ?? Number.NaN),
  ];
}

/** Cores that others may use during a measure before its delays say more about them. The clients take about one. */
const quietCores = 1.5;

export function paced(results: Results): Table {
  const rows = results.paced ?? [];
  const isHeld = rows.some(({ result }) => result?.hold !== undefined);
  const percent = (share: number): string => `${number(100 * share)} %`;
  const delay = ({ delay: { p50, p99 } }: PacedLoad, noise: Noise | undefined): string =>
    (noise?.otherCores ?? 0) > quietCores ? '–' : `${number(p50)} / ${number(p99)}`;
  return {
    name: 'paced',
    title: 'G. Streams at the speed of a real model',
    columns: [
      'server',
      'CPU per token, µs',
      '× bare',
      'delay p50 / p99, ms',
      ...(isHeld
        ? [
            'many streams, two processes: tokens in time',
            'delay p50 / p99, ms',
            'CPU per token, µs',
          ]
        : []),
    ],
    rows: linesOf(rows, ({ result: { paced: load, hold }, noise }) => {
      const shown = [
        spread(load.cpuPerToken),
        load.timesBare === undefined ? '1' : spread(load.timesBare),
        delay(load, noise),
      ];
      if (!isHeld) return shown;
      if (hold === undefined) return [...shown, '–', '–', '–'];
      return [...shown, percent(hold.arrived), delay(hold, noise), number(hold.cpuPerToken.median)];
    }),
  };
}

export function background(results: Results): Table {
  return {
    name: 'background',
    title: 'H. Runs in the background, ms',
    columns: [
      'system',
      'detach until the caller continues',
      'abort until the signal in another process',
      'abort until the run has ended there',
      'kill -9 until another process continues',
      'of it after expiry, in polling intervals',
      'shutdown until another process continues',
    ],
    rows: linesOf(results.background, ({ system, result }) => [
      spread(result.detach),
      spread(result.abort),
      spread(result.ended),
      system === 'waymark' ? spread(result.takeover) : 'never: the run is lost',
      spread(result.looks),
      spread(result.handOver),
    ]),
  };
}
