import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: { text: 'Done.', delayMs: 50 } });

// #region app

import { waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';

export const app = waymark({
  model,
  store: postgresStore({ connectionString: process.env.DATABASE_URL ?? '' }),
  claimTtl: 10_000, // a process that is silent for so long has lost its runs to the others
  onError: (error, { agent, runId }) => console.error(agent, runId, error),
});

export const chat = app.defineAgent({ name: 'chat' });
// #endregion

// #region main
await app.ready(); // opens the store and brings its tables to this version's format
// #endregion

// #region accept
// A turn that another process may go on with when this one dies. `serve` does this for every turn it accepts.
const { finishReason } = await chat.run('hello', { accept: true });
// #endregion
assert.equal(finishReason, 'stop');
await app.close();
