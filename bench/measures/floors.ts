// I: what this machine takes for the same bytes without any framework.
import { closeSync, fdatasyncSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { reply, userText } from '../lib/text.ts';
import { openPostgresFloor } from './floor-postgres.ts';
import { openSqliteFloor } from './floor-sqlite.ts';

/** Milliseconds of one operation. */
export interface Floors {
  /** The JSON of what a turn adds. */
  readonly json: Stats;
  /** The instant model's stream, read by nobody's framework. */
  readonly model: Stats;
  /** One row with that JSON, in one commit. */
  readonly sqliteCommit: Stats;
  readonly sqliteFullCommit: Stats;
  readonly postgresCommit: Stats;
  /** One line with that JSON. */
  readonly fileAppend: Stats;
  readonly fileSyncedAppend: Stats;
  /** Accepting a turn, then saving it, by hand: the two transactions of a turn that survives a crash. */
  readonly sqliteTurn: Stats;
  readonly sqliteFullTurn: Stats;
  readonly postgresTurn: Stats;
}

export async function measure({ place, scale }: Job): Promise<Floors> {
  const ms = scale.floor;
  mkdirSync(place.directory, { recursive: true });
  const sqlite = openSqliteFloor(join(place.directory, 'floor.db'), 'NORMAL');
  const sqliteFull = openSqliteFloor(join(place.directory, 'floor-full.db'), 'FULL');
  const postgres = await openPostgresFloor(new pg.Client({ connectionString: place.postgres }));
  const file = openSync(join(place.directory, 'floor.jsonl'), 'a');
  try {
    return {
      json: drive(ms, () => newContent()),
      model: await driveAsync(ms, readModel),
      sqliteCommit: drive(ms, () => sqlite.commit(newContent())),
      sqliteFullCommit: drive(ms, () => sqliteFull.commit(newContent())),
      postgresCommit: await driveAsync(ms, () => postgres.commit(newContent())),
      fileAppend: drive(ms, () => void writeSync(file, `${newContent()}\n`)),
      fileSyncedAppend: drive(ms, () => {
        writeSync(file, `${newContent()}\n`);
        fdatasyncSync(file);
      }),
      sqliteTurn: drive(ms, () => sqlite.turn(newMessages())),
      sqliteFullTurn: drive(ms, () => sqliteFull.turn(newMessages())),
      postgresTurn: await driveAsync(ms, () => postgres.turn(newMessages())),
    };
  } finally {
    sqlite.close();
    sqliteFull.close();
    await postgres.close();
    closeSync(file);
  }
}

function newMessages(): readonly object[] {
  return [
    { role: 'user', content: [{ text: userText() }] },
    { role: 'model', content: [{ text: reply().text }] },
  ];
}

function newContent(): string {
  return JSON.stringify(newMessages());
}

async function readModel(): Promise<void> {
  const { chunks } = reply();
  let at = 0;
  const stream = new ReadableStream<string>({
    pull(controller) {
      const piece = chunks[at++];
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  const reader = stream.getReader();
  while (!(await reader.read()).done);
}

function drive(ms: number, run: () => unknown): Stats {
  const times: number[] = [];
  for (let warm = 0; warm < 500; warm++) run();
  const end = performance.now() + ms;
  for (let at = performance.now(); at < end; ) {
    run();
    const now = performance.now();
    times.push(now - at);
    at = now;
  }
  return statsOf(times);
}

async function driveAsync(ms: number, run: () => Promise<void>): Promise<Stats> {
  const times: number[] = [];
  for (let warm = 0; warm < 200; warm++) await run();
  const end = performance.now() + ms;
  for (let at = performance.now(); at < end; ) {
    await run();
    const now = performance.now();
    times.push(now - at);
    at = now;
  }
  return statsOf(times);
}
