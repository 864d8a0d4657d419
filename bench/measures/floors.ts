// I: what this machine takes for the same bytes without any framework.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { newMessages, reply } from '../lib/text.ts';
import { openFileFloor } from './floor-file.ts';
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
  /** Accepting a turn, then saving it, by hand: the two steps of a turn that survives a crash. */
  readonly sqliteTurn: Stats;
  readonly sqliteFullTurn: Stats;
  readonly postgresTurn: Stats;
  readonly fileTurn: Stats;
  readonly fileSyncedTurn: Stats;
}

export async function measure({ place, scale }: Job): Promise<Floors> {
  const ms = scale.floor;
  mkdirSync(place.directory, { recursive: true });
  const sqlite = openSqliteFloor(join(place.directory, 'floor.db'), 'normal');
  const sqliteFull = openSqliteFloor(join(place.directory, 'floor-full.db'), 'full');
  const postgres = await openPostgresFloor(new pg.Client({ connectionString: place.postgres }));
  const file = openFileFloor(place.directory);
  try {
    return {
      json: drive(ms, () => newContent()),
      model: await driveAsync(ms, readModel),
      sqliteCommit: drive(ms, () => sqlite.commit(newContent())),
      sqliteFullCommit: drive(ms, () => sqliteFull.commit(newContent())),
      postgresCommit: await driveAsync(ms, () => postgres.commit(newContent())),
      fileAppend: drive(ms, () => file.append(newContent(), false)),
      fileSyncedAppend: drive(ms, () => file.append(newContent(), true)),
      sqliteTurn: drive(ms, () => sqlite.turn(newMessages())),
      sqliteFullTurn: drive(ms, () => sqliteFull.turn(newMessages())),
      postgresTurn: await driveAsync(ms, () => postgres.turn(newMessages())),
      fileTurn: drive(ms, () => file.turn(newMessages(), false)),
      fileSyncedTurn: drive(ms, () => file.turn(newMessages(), true)),
    };
  } finally {
    sqlite.close();
    sqliteFull.close();
    await postgres.close();
    file.close();
  }
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
  const warm = performance.now() + ms / 2;
  for (let at = 0; at < 500 && performance.now() < warm; at++) run();
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
  const warm = performance.now() + ms / 2;
  for (let at = 0; at < 500 && performance.now() < warm; at++) await run();
  const end = performance.now() + ms;
  for (let at = performance.now(); at < end; ) {
    await run();
    const now = performance.now();
    times.push(now - at);
    at = now;
  }
  return statsOf(times);
}
