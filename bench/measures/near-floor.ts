// The floor of a stored turn once more, between the turns that are compared with it: a shared machine is twice as fast in one second
// as in another, and a ratio says something only of what was measured in the same one.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { newMessages } from '../lib/text.ts';
import type { Place, Variant } from '../systems/system.ts';
import { openFileFloor } from './floor-file.ts';
import { openPostgresFloor } from './floor-postgres.ts';
import { openSqliteFloor } from './floor-sqlite.ts';

/** A turn by hand. */
interface Floor {
  turn(): void | Promise<void>;
  close(): void | Promise<void>;
}

/** What was found of a floor. */
export interface FloorBetween {
  /** Milliseconds of a turn by hand. */
  readonly ms: Stats;
  /** How often that goes into the turn before it. */
  readonly factor: Stats;
}

/** A floor that is measured between the turns of somebody else. */
export interface NearFloor {
  /** Measures it once, behind a turn that took so many milliseconds. */
  behind(turnMs: number): Promise<void>;
  stats(): FloorBetween | undefined;
  close(): Promise<void>;
}

/** The floor of a kind of store, warmed up, in a place of its own. */
export async function openNearFloor(
  store: NonNullable<Variant['store']>,
  { place, scale }: Pick<Job, 'place' | 'scale'>,
): Promise<NearFloor> {
  const floor = await openFloor(store, place);
  const measured: number[] = [];
  const factors: number[] = [];
  // There is little of it to compile: a part of the time is enough, and more would make it a large file.
  const warm = performance.now() + scale.warmUp / 6;
  while (performance.now() < warm) await floor.turn();
  return {
    async behind(turnMs) {
      const started = performance.now();
      await floor.turn();
      const ms = performance.now() - started;
      measured.push(ms);
      factors.push(turnMs / ms);
    },
    stats: () =>
      measured.length === 0 ? undefined : { ms: statsOf(measured), factor: statsOf(factors) },
    close: async () => await floor.close(),
  };
}

async function openFloor(
  store: NonNullable<Variant['store']>,
  { directory, postgres }: Pick<Place, 'directory' | 'postgres'>,
): Promise<Floor> {
  // Beside the session that others go on with, not in its folder.
  const own = `${directory}-floor`;
  mkdirSync(own, { recursive: true });
  switch (store) {
    case 'sqlite':
    case 'sqlite-full': {
      const durability = store === 'sqlite' ? 'normal' : 'full';
      const { turn, close } = openSqliteFloor(join(own, 'floor.db'), durability);
      return { turn: () => turn(newMessages()), close };
    }
    case 'file':
    case 'file-synced': {
      const { turn, close } = openFileFloor(own);
      return { turn: () => turn(newMessages(), store === 'file-synced'), close };
    }
    case 'postgres': {
      // On the same server, but not among the bytes of whoever is measured.
      const address = new URL(postgres);
      address.pathname = '/postgres';
      const client = new pg.Client({ connectionString: address.href });
      const { turn, close } = await openPostgresFloor(client);
      return { turn: () => turn(newMessages()), close };
    }
  }
}
