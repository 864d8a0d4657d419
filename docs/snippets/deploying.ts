import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: { text: 'Done.', delay: 50 } });

// #region app

import { waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';

export const app = waymark({
  model,
  store: postgresStore({ connectionString: process.env.DATABASE_URL }),
  claimTtl: 10_000, // after this time without a heartbeat, other processes take over its runs
  onError: (error, { agent, runId }) => console.error(agent, runId, error),
});

export const chat = app.defineAgent({ name: 'chat' });
// #endregion

await app.ready(); // opens the store and migrates its tables

// #region accept
// Another process can take over this turn when this one dies. `serve` does this for every turn it accepts.
const { finishReason } = await chat.run('hello', { accept: true });
// #endregion
assert.equal(finishReason, 'stop');
await app.close();

// #region pooled
const pooledStore = postgresStore({
  connectionString: process.env.DATABASE_URL, // the pooler
  directUrl: process.env.DIRECT_URL, // the server itself, for notifications
});
// #endregion
await pooledStore.close?.();
