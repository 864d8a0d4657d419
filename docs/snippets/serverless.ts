import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'Done.' });
const auth = (request: Request) =>
  request.headers.get('authorization') === 'Bearer secret' ? { principal: 'ann' } : undefined;

// #region app

import pg from 'pg';
import { waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { handler } from 'waymark/server';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 2 }); // the pooler
export const app = waymark({
  model,
  store: postgresStore({ pool }),
  engine: pgBossEngine({ pool }),
  work: false,
});
export const fetch = handler(app, { auth });
// #endregion

export const chat = app.defineAgent({ name: 'chat' });
const { snapshotId } = await chat.run({
  message: { role: 'user', content: [{ text: 'later' }] },
  detach: true,
});

// #region worker
// Called by the platform's scheduler, for example every minute.
export async function work(): Promise<void> {
  const { isIdle } = await app.work({ timeout: 50_000 });
  if (!isIdle) console.log('More runs are waiting: call the worker more often, or start several.');
}
// #endregion
await work();
assert.ok(snapshotId);
assert.equal((await chat.wait(snapshotId)).status, 'succeeded');
await app.close();
await pool.end();
