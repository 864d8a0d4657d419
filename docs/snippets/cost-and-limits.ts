import assert from 'node:assert/strict';
import { type Price, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

const usage = { inputTokens: 1_000, outputTokens: 100, totalTokens: 1_100 };
const model = scriptedModel([
  { text: 'Hello.', usage },
  { text: 'Hello again.', usage },
  { text: 'Hello.', usage },
  { text: 'A cat.', usage },
]);
const store = sqliteStore(':memory:');

// #region price
// Micro-units: $2 per million input tokens is 2 micro-dollars per token.
const price: Price = (_model, { inputTokens = 0, outputTokens = 0 }) => ({
  USD: inputTokens * 2 + outputTokens * 8,
});

const app = waymark({ store, model, price });
// #endregion

// #region cache
const archive = app.defineAgent({
  name: 'archive',
  system: 'Answer from the archive.',
  config: { cache: '1h' }, // keeps marks for an hour; false: sets none
});
// #endregion
assert.equal(archive.name, 'archive');

// #region budget
const support = app.defineAgent({
  name: 'support',
  system: 'Help the user.',
  limits: {
    turn: { cost: { USD: 250_000 } }, // $0.25
    session: { cost: { USD: 2_000_000 }, tokens: 500_000 },
    owner: { cost: { USD: 20_000_000 }, per: 'month' },
  },
});
// #endregion

// #region bound
const bounded = app.defineAgent({
  name: 'bounded',
  system: 'Help the user.',
  config: { maxOutputTokens: 2_000 },
  limits: { owner: { cost: { USD: 20_000_000 }, per: 'month' } },
});

// Or say what a call costs at most, for example if the messages contain images.
const withImages = app.defineAgent({
  name: 'with-images',
  system: 'Describe the images.',
  limits: {
    owner: { cost: { USD: 20_000_000 }, per: 'month' },
    reserve: { cost: { USD: 50_000 } }, // $0.05
  },
});
// #endregion

// #region read
const output = await support.run('Hi', { owner: 'ada' });
console.log(output.usage?.cost); // { USD: 2800 }

const { sessionId } = output;
const spent = await support.getUsage({ sessionId, by: 'model', owner: 'ada' });
console.log(spent.usage.cost, spent.items);
// #endregion
assert.deepEqual(output.usage?.cost, { USD: 2_800 });
assert.equal(spent.calls, 1);
assert.deepEqual(spent.usage.cost, { USD: 2_800 });
for (const agent of [bounded, withImages]) {
  assert.equal((await agent.run('Hi', { owner: 'ada' })).finishReason, 'stop');
}
await app.close();
