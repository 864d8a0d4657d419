import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

/** A payment service that charges a key once. */
const shop = {
  charges: [] as { order: number; key?: string | undefined }[],
  async charge(order: number, options: { key?: string } = {}): Promise<string> {
    const { key } = options;
    if (key !== undefined && shop.charges.some((each) => each.key === key)) return 'charged';
    shop.charges.push({ order, key });
    return 'charged';
  },
};

// #region wrong

import { type App, memoryStore, waymark } from 'waymark';
import { z } from 'zod';

function createDesk(): App {
  const app = waymark({ store: memoryStore() });
  const charge = app.defineTool(
    { name: 'charge', description: 'Charges an order', input: z.object({ order: z.number() }) },
    async ({ order }) => await shop.charge(order),
  );
  app.defineAgent({ name: 'desk', system: 'You work for a shop.', tools: [charge] });
  return app;
}

// #endregion

// #region test

import { crashTest, formatCrashReport } from 'waymark/testing';

const model = scriptedModel([
  { toolCalls: [{ name: 'charge', input: { order: 7 } }] },
  'Order 7 is charged.',
]);

const report = await crashTest(createDesk, { agent: 'desk', input: 'Charge order 7', model });

for (const { effect, expected, actual, points } of report.repeatedEffects) {
  console.log(effect, expected, actual, points);
}
console.log(formatCrashReport(report));
// #endregion

assert.equal(report.ok, false);
assert.deepEqual(report.repeatedEffects[0]?.points, [
  'after tool charge',
  'before store write checkpoint',
]);
assert.equal(report.points.length, 12);

const repairedApp = waymark({ store: memoryStore() });
{
  const app = repairedApp;
  // #region right
  const charge = app.defineTool(
    { name: 'charge', description: 'Charges an order', input: z.object({ order: z.number() }) },
    async ({ order }, { idempotencyKey }) => await shop.charge(order, { key: idempotencyKey }),
  );
  // #endregion
  app.defineAgent({ name: 'desk', system: 'You work for a shop.', tools: [charge] });
}

const repaired = await crashTest(repairedApp, {
  input: 'Charge order 7',
  model: scriptedModel([
    { toolCalls: [{ name: 'charge', input: { order: 7 } }] },
    'Order 7 is charged.',
  ]),
});
assert.deepEqual(repaired.repeatedEffects, []);
assert.equal(repaired.ok, true);

// #region hint
const app = waymark({ store: memoryStore() });
const track = app.defineTool(
  {
    name: 'track',
    description: 'Finds a parcel',
    input: z.object({ order: z.number() }),
    metadata: { annotations: { readOnlyHint: true } },
  },
  async ({ order }) => `Parcel ${order} arrives tomorrow.`,
);
// #endregion

app.defineAgent({ name: 'desk', tools: [track] });

const script = [{ toolCalls: [{ name: 'track', input: { order: 7 } }] }, 'Tomorrow.'];

// #region measured
const measured = await crashTest(app, {
  input: 'Where is order 7?',
  model: scriptedModel(script),
  effects: () => shop.charges,
  reset: () => {
    shop.charges = [];
  },
});
// #endregion

assert.equal(measured.ok, true);

const session = await app.agent('desk').run('Where is order 7?', { model: scriptedModel(script) });
const { sessionId } = session;

// #region sessions
const recorded = await crashTest(app, { agent: 'desk', sessions: sessionId });
// #endregion

assert.equal(recorded.ok, true);
assert.equal(recorded.points.length, 12);
