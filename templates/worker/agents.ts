import pg from 'pg';
import { waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import type { ServeOptions } from 'waymark/server';
import { auth } from './auth.ts';
import { defineDesk } from './desk.ts';
import { model } from './model.ts';

const connectionString =
  process.env.DATABASE_URL ?? 'postgres://postgres:postgres@127.0.0.1:5432/postgres';
const pool = new pg.Pool({ connectionString, max: 20 });
// The pool replaces a connection that breaks while it is idle.
pool.on('error', (error) => console.error(error.message));

/** The app of the server and of the workers. Both use the same store and queue. */
export const app = waymark({
  model,
  store: postgresStore({ pool }),
  engine: pgBossEngine({ pool }),
});

export const desk = defineDesk(app);

/** Options of `waymark serve`. */
export const serverOptions: ServeOptions = { auth };
