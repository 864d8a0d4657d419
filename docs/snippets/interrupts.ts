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

import { memoryStore, toolApproval, waymark } from 'waymark';
import { z } from 'zod';

const app = waymark({ model, store: memoryStore() });

const pay = app.defineTool(
  { name: 'pay', description: 'Pays', input: z.object({ euros: z.number() }) },
  async ({ euros }, { interrupt, resumed, idempotencyKey }) => {
    if (resumed === undefined) interrupt({ question: `Pay ${euros} €?` });
    return { paid: euros, reference: idempotencyKey }; // the same key for every attempt of this call
  },
);
// #endregion

// #region answer-tool
const askCity = app.defineInterrupt({
  name: 'ask_city',
  description: 'Asks the user for a city',
  input: z.object({ question: z.string() }),
  output: z.string(), // the schema of the answer
});
// #endregion
const remove = app.defineTool(
  { name: 'remove', description: 'Removes a file', input: z.object({ path: z.string() }) },
  ({ path }) => `removed ${path}`,
);

const clerk = app.defineAgent({ name: 'clerk', tools: [pay, askCity] });

// #region ask
const asked = await clerk.run('pay 20');
asked.finishReason; // 'interrupted'
for (const { toolName, input, metadata } of asked.interrupts) {
  console.log(toolName, input, metadata); // pay { euros: 20 } { question: 'Pay 20 €?' }
}
// #endregion
assert.equal(asked.finishReason, 'interrupted');
assert.deepEqual(asked.interrupts[0]?.metadata, { question: 'Pay 20 €?' });

// #region restart
const paid = await clerk.resume(
  asked,
  asked.interrupts.map((request) => request.approve()),
);
// #endregion
assert.match(paid.text, /paid/);

const { sessionId } = await clerk.run('pay 50');
// #region edit
// After a restart: the session has the same interrupts.
const session = await clerk.getSession(sessionId);
if (session) {
  const less = session.interrupts.map((request) => request.approve({ input: { euros: 40 } }));
  console.log((await clerk.resume(session, less)).text);
}
// #endregion
assert.match((await clerk.getSession(sessionId))?.text ?? 'no session', /"paid":40/);

const where = await clerk.run('where', { sessionId: asked.sessionId });
// #region respond
const answered = await clerk.resume(
  where,
  where.interrupts.map((request) => request.respond('Lisbon')),
);
// #endregion
assert.match(answered.text, /Lisbon/);

const costly = await clerk.run('pay 3000', { sessionId: asked.sessionId });
// #region decline
const declined = await clerk.resume(
  costly,
  costly.interrupts.map((request) => request.decline('too much')),
);
// #endregion
assert.match(declined.text, /The user declined/);

await clerk.run('pay 30', { sessionId: asked.sessionId });
// #region continue
// A plain message declines the pending requests, and the conversation continues.
const left = await clerk.run('No, leave it', { sessionId: asked.sessionId });
// #endregion
assert.equal(left.finishReason, 'stop');

// #region approval
const careful = app.defineAgent({
  name: 'careful',
  tools: [remove],
  use: [toolApproval(['remove'])], // asks for approval before the tool runs; the tool does not change
});
// #endregion
const held = await careful.run('delete it');
// #region approve
const done = await careful.resume(
  held,
  held.interrupts.map((request) => request.approve()),
);
// #endregion
assert.match(done.text, /removed/);
await app.close();
