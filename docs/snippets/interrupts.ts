import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [
    [
      /pay (\d+)/,
      ([, euros = '0']) => ({ toolCalls: [{ name: 'pay', input: { euros: Number(euros) } }] }),
    ],
    [/where/, { toolCalls: [{ name: 'ask_city', input: { question: 'Which city?' } }] }],
    [/delete/, { toolCalls: [{ name: 'remove', input: { path: 'old.txt' } }] }],
  ],
  afterTools: (_, results) => `Result: ${JSON.stringify(results)}`,
  otherwise: 'As you like.',
});

// #region tool

import { memoryStore, type Output, toolApproval, waymark } from 'waymark';
import { z } from 'zod';

const app = waymark({ model, store: memoryStore() });

const pay = app.defineTool(
  { name: 'pay', description: 'Pays', input: z.object({ euros: z.number() }) },
  async ({ euros }, { interrupt, resumed, idempotencyKey }) => {
    if (resumed === undefined) interrupt({ question: `Pay ${euros} €?` });
    if (resumed !== true) return 'not approved';
    return { paid: euros, reference: idempotencyKey }; // the same key for every attempt at this call
  },
);
// #endregion

// #region answer-tool
const askCity = app.defineInterrupt({
  name: 'ask_city',
  description: 'Asks the user for a city',
  input: z.object({ question: z.string() }),
  output: z.string(), // what the answer must be
});
// #endregion
const remove = app.defineTool(
  { name: 'remove', description: 'Removes a file', input: z.object({ path: z.string() }) },
  ({ path }) => `removed ${path}`,
);

const clerk = app.defineAgent({ name: 'clerk', tools: [pay, askCity] });

// #region ask
const asked = await clerk.runText('pay 20');
asked.finishReason; // 'interrupted'
const waiting = requestsOf(asked);

function requestsOf({ message }: Pick<Output, 'message'>) {
  return (message?.content ?? []).filter((part) => 'toolRequest' in part);
}
// #endregion
assert.equal(asked.finishReason, 'interrupted');
assert.deepEqual(waiting[0]?.metadata?.interrupt, { question: 'Pay 20 €?' });

// #region restart
const paid = await clerk.run(
  {
    resume: {
      restart: waiting.map(({ toolRequest }) => ({ toolRequest, metadata: { resumed: true } })),
    },
  },
  { sessionId: asked.sessionId },
);
// #endregion
assert.match(JSON.stringify(paid.message?.content), /paid/);

const where = await clerk.runText('where', { sessionId: asked.sessionId });
// #region respond
const answered = await clerk.run(
  {
    resume: {
      respond: requestsOf(where).map(({ toolRequest: { name, ref } }) => ({
        toolResponse: { name, ...(ref !== undefined && { ref }), output: 'Lisbon' },
      })),
    },
  },
  { sessionId: where.sessionId },
);
// #endregion
assert.match(JSON.stringify(answered.message?.content), /Lisbon/);

const again = await clerk.runText('pay 30', { sessionId: asked.sessionId });
assert.equal(again.finishReason, 'interrupted');
// #region decline
// A plain message closes what waits as declined, and goes on.
const left = await clerk.runText('No, leave it', { sessionId: asked.sessionId });
// #endregion
assert.equal(left.finishReason, 'stop');

// #region approval
const careful = app.defineAgent({
  name: 'careful',
  tools: [remove],
  use: [toolApproval(['remove'])], // asks before the tool runs; the tool itself knows nothing of it
});
// #endregion
const held = await careful.runText('delete it');
// #region approve
const done = await careful.run(
  {
    resume: {
      restart: requestsOf(held).map(({ toolRequest }) => ({
        toolRequest,
        metadata: { resumed: { approved: true } }, // or { approved: false, reason: '…' }
      })),
    },
  },
  { sessionId: held.sessionId },
);
// #endregion
assert.match(JSON.stringify(done.message?.content), /removed/);
await app.close();
