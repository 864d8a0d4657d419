import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Child } from '../engine/support/processes.ts';
import type { TestPostgres } from '../support/postgres.ts';

/** What may go wrong, and how often it did. */
export interface Mischief {
  kills: number;
  stalls: number;
  cuts: number;
  restarts: number;
}

export interface ChaosOptions {
  readonly postgres: TestPostgres;
  /** The workers, which are replaced as they die. */
  readonly workers: Child[];
  readonly startWorker: () => Promise<Child>;
  /** Milliseconds between two pieces of mischief. */
  readonly everyMs: number;
  /** Gives numbers from 0 up to 1, the same ones for the same test. */
  readonly random: () => number;
  readonly onKill?: () => void;
  readonly signal: AbortSignal;
}

/** Kills, stalls and disconnects at random until told to stop; leaves all workers running. */
export async function makeTrouble(options: ChaosOptions): Promise<Mischief> {
  const { postgres, workers, startWorker, everyMs, random, signal } = options;
  const done: Mischief = { kills: 0, stalls: 0, cuts: 0, restarts: 0 };
  const waking: Promise<void>[] = [];
  // As a supervisor does while the database is away.
  const startAgain = (): Promise<Child> =>
    startWorker().catch(async () => {
      await sleep(500);
      return await startAgain();
    });
  const kill = async (at: number): Promise<void> => {
    await workers[at]?.end();
    workers[at] = await startAgain();
    done.kills++;
    options.onKill?.();
  };
  const stall = (at: number): void => {
    const worker = workers[at];
    worker?.signal('SIGSTOP');
    // Long enough, now and then, for somebody else to have taken its runs over when it wakes.
    const ms = random() < 0.3 ? 13_000 : 1_000;
    waking.push(sleep(ms).then(() => worker?.signal('SIGCONT')));
    done.stalls++;
  };
  const cut = async (): Promise<void> => {
    await query(
      postgres.connectionString,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.5`,
    );
    done.cuts++;
  };
  for (let turn = 0; !signal.aborted; turn++) {
    await sleep(everyMs * (0.5 + random()), undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const at = Math.floor(random() * workers.length);
    if (turn === 2) {
      await postgres.shutDown();
      await postgres.startAgain();
      done.restarts++;
    } else if (turn % 3 === 0) await kill(at);
    else if (turn % 3 === 1) stall(at);
    else await cut().catch(() => {});
  }
  await Promise.all(waking);
  return done;
}

async function query(connectionString: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Numbers from 0 up to 1 that look random and are the same each time (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
