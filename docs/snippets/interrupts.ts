import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [
    [
      /pay (\d+)/,
      ([, euros = '0']) => ({ toolCalls: [{ name: 'pay', input: { euros: Number(euros) } }] }),
    ],
    [
      /refund (\d+)/,
      ([, euros = '0']) => ({ toolCalls: [{ name: 'refund', input: { euros: Number(euros) } }] }),
    ],
    [/Where/, { toolCalls: [{ name: 'ask_city', input: { question: 'Which city?' } }] }],
    [
      /map of (\w+)/,
      ([, city = 'Lisbon']) => ({ toolCalls: [{ name: 'show_map', input: { city } }] }),
    ],
    [/delete/, { toolCalls: [{ name: 'remove', input: { path: 'old.txt' } }] }],
  ],
  afterTools: (_, results) => `Result: ${JSON.stringify(results)}`,
  otherwise: 'As you like.',
});

// #region needs-approval

import { memoryStore, waymark } from 'waymark';
import { z } from 'zod';

const app = waymark({ model, store: memoryStore() });

const refund = app.defineTool(
  {
    name: 'refund',
    description: 'Refunds an order',
    input: z.object({ euros: z.number() }),
    needsApproval: ({ euros }) => euros > 10, // or `true`
  },
  ({ euros }) => ({ refunded: euros }),
);
const desk = app.defineAgent({ name: 'desk', tools: [refund] });
// #endregion
assert.equal((await desk.run('refund 5')).finishReason, 'stop');

// #region approve-refund
const waiting = await desk.run('refund 20');
waiting.finishReason; // 'interrupted'
await desk.resume(waiting, (request) => request.approve()); // or request.decline('Too much')
// #endregion
assert.equal(waiting.finishReason, 'interrupted');
assert.match(String((await desk.getSession(waiting.sessionId))?.text), /"refunded":20/);

// #region tool
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
const clerk = app.defineAgent({ name: 'clerk', tools: [pay, askCity] });
// #endregion

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
const paid = await clerk.resume(asked, (request) => request.approve());
// #endregion
assert.match(paid.text, /paid/);

// #region edit
const { sessionId } = await clerk.run('pay 50');
// After a restart: the id of the session is enough.
const input = { euros: 40 };
const less = await clerk.resume({ sessionId }, (request) => request.approve({ input }));
// #endregion
assert.match(less.text, /"paid":40/);

// #region stream
const third = await clerk.run('pay 60');
const answers = third.interrupts.map((request) => request.approve());
const turn = clerk.stream({ resume: answers }, { sessionId: third.sessionId });
for await (const text of turn.textStream) process.stdout.write(text);
// #endregion
assert.match((await turn.output).text, /"paid":60/);

// #region respond
const where = await clerk.run('Where is my hotel?', { sessionId }); // calls ask_city
const answered = await clerk.resume(where, (request) => request.respond('Lisbon'));
// #endregion
assert.match(answered.text, /Lisbon/);

// #region decline
const costly = await clerk.run('pay 3000', { sessionId });
const declined = await clerk.resume(costly, (request) => request.decline('too much'));
// #endregion
assert.match(declined.text, /The user declined/);

// #region continue
await clerk.run('pay 30', { sessionId });
// A plain message declines the pending requests, and the conversation continues.
const left = await clerk.run('No, leave it', { sessionId });
// #endregion
assert.equal(left.finishReason, 'stop');

// #region deadline
const hourly = toolApproval(['remove'], { expiresIn: 60 * 60_000, onExpiry: 'fail' });
// #endregion
assert.equal(hourly.name, 'tool approval');

// #region approval

import { toolApproval } from 'waymark';

const remove = app.defineTool(
  { name: 'remove', description: 'Removes a file', input: z.object({ path: z.string() }) },
  ({ path }) => `removed ${path}`,
);
const careful = app.defineAgent({
  name: 'careful',
  tools: [remove],
  use: [toolApproval(['remove'])], // asks for approval before the tool runs; the tool does not change
});
// #endregion

// #region approve
const held = await careful.run('delete it');
const done = await careful.resume(held, (request) => request.approve());
// #endregion
assert.match(done.text, /removed/);

const shown: string[] = [];
const showMap = (city: string) => shown.push(city);
// #region caller-tools
const tools = [
  {
    name: 'show_map',
    description: 'Shows a map on the page',
    inputSchema: z.object({ city: z.string() }), // or a JSON Schema
  },
];
let answer = await careful.run('Show me a map of Lisbon', { tools });
while (answer.finishReason === 'interrupted') {
  const results = answer.interrupts.map((request) => {
    showMap(Object(request.input).city); // a function of yours, in your process or page
    return request.respond({ shown: true });
  });
  answer = await careful.resume(answer, results, { tools });
}
// #endregion
assert.deepEqual(shown, ['Lisbon']);
assert.match(answer.text, /shown/);
await app.close();
