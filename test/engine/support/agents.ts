import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  type PgBossEngine,
  type PgBossEngineOptions,
  pgBossEngine,
} from '../../../src/engine/pg-boss/index.ts';
import { type App, waymark } from '../../../src/index.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { talkative } from '../../server/kit.ts';

type Tuning = Omit<PgBossEngineOptions, 'pool' | 'connectionString' | 'max'>;

/** An app on the queue of a database, with agents that do what their input says. */
export interface QueueApp {
  readonly app: App;
  readonly engine: PgBossEngine;
  readonly pool: pg.Pool;
  close(grace?: number): Promise<void>;
}

export interface QueueAppOptions {
  readonly connectionString: string;
  /** @default true */
  readonly work?: boolean;
  readonly version?: string;
  /** Longer than a busy machine lets a process wait. @default 60000 */
  readonly claimTtl?: number;
  /** The agents to define. @default ['echo'] */
  readonly agents?: readonly string[];
  readonly engine?: Tuning;
  readonly onError?: (error: unknown) => void;
}

/**
 * Opens such an app. `{"ms": 50, "steps": 3}` as the input's text makes an agent take its time, and count its steps; `dieWhile` and
 * `waitWhile` name a folder: while it is there, the worker dies, or the agent waits; `blockWhile` blocks the worker's event loop. The
 * agent `chat` has a model that does what it is told.
 */
export function openQueueApp(options: QueueAppOptions): QueueApp {
  const {
    connectionString,
    work = true,
    version,
    agents = ['echo'],
    onError,
    claimTtl = 60_000,
  } = options;
  const pool = new pg.Pool({ connectionString, max: 12 });
  pool.on('error', () => {});
  const engine = pgBossEngine({ pool, ...options.engine });
  const app = waymark({
    store: postgresStore({ pool }),
    engine,
    work,
    claimTtl,
    onError: (error) => onError?.(error),
  });
  for (const name of agents) {
    if (name === 'chat') {
      app.defineAgent({ name, model: talkative() });
      continue;
    }
    app.defineCustomAgent(
      { name, ...(version && { version }) },
      async (session, { respond, signal }) => {
        await session.run(async ({ message }) => {
          const text =
            message?.content.map((part) => ('text' in part ? part.text : '')).join('') ?? '';
          const { ms = 0, steps = 1, dieWhile, blockWhile, waitWhile } = wishOf(text);
          if (dieWhile !== undefined && existsSync(dieWhile)) process.kill(process.pid, 'SIGKILL');
          if (blockWhile !== undefined) block(blockWhile);
          for (let step = 0; step < steps; step++) {
            await session.step(`step-${step}`, async () => step);
            await respond.modelChunk({ content: [{ text: `${step};` }] });
            if (ms > 0) await sleep(ms, undefined, { signal });
          }
          while (waitWhile !== undefined && existsSync(waitWhile)) {
            await sleep(20, undefined, { signal });
          }
          session.addMessages({ role: 'model', content: [{ text: `${version ?? ''}:${text}` }] });
        });
      },
    );
  }
  return {
    app,
    engine,
    pool,
    async close(grace = 5_000) {
      await app.close({ grace });
      await pool.end().catch(() => {});
    },
  };
}

function wishOf(text: string): {
  ms?: number;
  steps?: number;
  dieWhile?: string;
  blockWhile?: string;
  waitWhile?: string;
} {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

/** Blocks this thread while a folder is there, for ten minutes at most. Each process leaves a file in it first. */
function block(folder: string): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  if (existsSync(folder)) writeFileSync(join(folder, String(process.pid)), '');
  for (let left = 600_000; left > 0 && existsSync(folder); left -= 20) Atomics.wait(cell, 0, 0, 20);
}

/** A text as an input that is detached from its start. */
export function detached(text: string): {
  readonly message: { readonly role: 'user'; readonly content: { readonly text: string }[] };
  readonly detach: true;
} {
  return { message: { role: 'user', content: [{ text }] }, detach: true };
}
