// #region app
import pg from 'pg';
import { waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
// The pool replaces idle connections that break.
pool.on('error', (error) => console.error(error.message));
export const engine = pgBossEngine({ pool, slots: 20 });
const store = postgresStore({ pool, directUrl: process.env.DIRECT_URL });
export const app = waymark({ store, engine });
// #endregion

/** Stands for your agents: an agent that counts the words it is given. */
export const counter = app.defineCustomAgent({ name: 'counter' }, async (session) => {
  await session.run(async ({ message }) => {
    const [part] = message?.content ?? [];
    const words = part !== undefined && 'text' in part ? part.text.split(/\s+/).length : 0;
    session.addMessages({ role: 'model', content: [{ text: `${words} words` }] });
  });
});
