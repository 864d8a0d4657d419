import pg from 'pg';
import { waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { chooseModel } from '../choose-model.ts';
import { defineResearcher, price } from './researcher.ts';

const archiveUrl = process.env.ARCHIVE_URL;
if (!archiveUrl) throw new Error('Set ARCHIVE_URL to the A2A address of the archive.');
const { model } = await chooseModel();

// #region app
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
pool.on('error', (error) => console.error(error.message));

/** The app of the server and of the workers: one store, one queue. */
export const app = waymark({
  store: postgresStore({ pool }),
  engine: pgBossEngine({ pool, slots: 5 }),
  price,
});
export const researcher = defineResearcher(app, { archiveUrl, model });
// #endregion
