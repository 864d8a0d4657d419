import assert from 'node:assert/strict';
import { memoryStore, textOf, toolApproval, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({ patterns: [], otherwise: 'One, two, three.' });
const app = waymark({ model, store: memoryStore() });

// #region define
const writer = app.defineCustomAgent(
  {
    name: 'writer',
    state: z.object({ drafts: z.number() }),
    initialState: { drafts: 0 },
    status: z.object({ phase: z.enum(['outline', 'draft']) }),
  },
  async (session, { respond, signal }) => {
    await session.run(async (input, { turnIndex, snapshotId }) => {
      const subject = input.message ? textOf(input.message) : '';

      await respond.status({ phase: 'outline' });
      const { text: outline } = await app.generate({ prompt: `Outline: ${subject}`, signal });

      await respond.status({ phase: 'draft' });
      const { text } = await app.generate({ prompt: `Draft from ${outline}`, signal });
      await respond.artifact({ name: 'draft.md', parts: [{ text }] });

      session.updateCustom((draft) => {
        draft.drafts++;
      });
      session.addMessages({
        role: 'model',
        content: [{ text: `Draft ${session.custom.drafts} of turn ${turnIndex} (${snapshotId})` }],
      });
    });
  },
);
// #endregion

const { stream, output } = writer.stream('Tides');
const phases: unknown[] = [];
for await (const { status } of stream) if (status) phases.push(status.phase);
assert.deepEqual(phases, ['outline', 'draft']);
assert.deepEqual((await output).artifacts?.[0]?.name, 'draft.md');

// #region stream-model
app.defineCustomAgent({ name: 'plain' }, async (session, { respond, signal }) => {
  await session.run(async () => {
    const { message } = await app.generate({
      messages: session.messages,
      signal,
      onChunk: (chunk) => respond.modelChunk(chunk),
    });
    if (message) session.addMessages(message);
    return { finishReason: 'stop' };
  });
  return session.result(); // the default: the last message and all artifacts
});
// #endregion
const plain = await app.agent('plain').run('Count');
assert.deepEqual(plain.message?.content, [{ text: 'One, two, three.' }]);

const pay = app.defineTool(
  { name: 'pay', description: 'Pays', input: z.object({ euros: z.number() }) },
  ({ euros }) => `Paid ${euros} euros.`,
);
// #region tools
const clerk = app.defineCustomAgent({ name: 'clerk' }, async (session, { respond, signal }) => {
  await session.run(async (input) => {
    const result = await app.generate({
      system: 'You pay bills.',
      messages: session.messages,
      tools: [pay],
      use: [toolApproval(['pay'])],
      ...(input.resume && { resume: input.resume }), // the answers of `agent.resume`
      signal,
      onChunk: (chunk) => respond.modelChunk(chunk),
    });
    session.addMessages(...result.messages); // only the new ones
    return { finishReason: result.finishReason }; // 'interrupted' if a tool waits
  });
});
// #endregion
const script = scriptedModel([{ toolCalls: [{ name: 'pay', input: { euros: 5 } }] }, 'Paid.']);
const waiting = await clerk.run('Pay the bill', { model: script });
assert.equal(waiting.finishReason, 'interrupted');
const settled = await clerk.resume(waiting, (request) => request.approve(), { model: script });
assert.equal(settled.text, 'Paid.');
assert.equal(script.requests.length, 2);
await assert.rejects(
  clerk.resume(waiting, (request) => request.approve(), { model: script }),
  { status: 'FAILED_PRECONDITION' },
);

// #region pause
const publisher = app.defineCustomAgent({ name: 'publisher' }, async (session) => {
  await session.run(async ({ resume }, { turnIndex }) => {
    const [answer] = resume?.respond ?? [];
    if (answer === undefined) {
      const { text } = await app.generate({ messages: session.messages });
      session.addMessages({
        role: 'model',
        content: [
          {
            toolRequest: { name: 'review', ref: `review-${turnIndex}`, input: { draft: text } },
            metadata: { interrupt: { question: 'Publish this?' } },
          },
        ],
      });
      return; // the turn ends as `interrupted`
    }
    const isDeclined = answer.metadata?.declined !== undefined;
    session.addMessages(
      { role: 'tool', content: [answer] }, // closes the request
      { role: 'model', content: [{ text: isDeclined ? 'Not published.' : 'Published.' }] },
    );
  });
});

const draft = await publisher.run('Write about tides');
const published = await publisher.resume(draft, (request) => request.respond('Looks good'));
console.log(published.text); // Published.
// #endregion
assert.equal(published.text, 'Published.');
await assert.rejects(
  publisher.resume(draft, (request) => request.respond('Again')),
  {
    status: 'FAILED_PRECONDITION',
  },
);
const other = await publisher.run('Write about winds');
assert.equal(
  (await publisher.resume(other, (request) => request.decline())).text,
  'Not published.',
);

// #region steering
const reviewer = app.defineCustomAgent({ name: 'reviewer' }, async (session) => {
  await session.run(async () => {
    let files = ['a.ts', 'b.ts', 'c.ts'];
    const done: string[] = [];
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      done.push(file);
      for (const message of await session.takeSteering()) {
        if (textOf(message) === 'That is enough.') files = [];
      }
    }
    session.addMessages({ role: 'model', content: [{ text: `Reviewed ${done.join(', ')}` }] });
  });
});
// #endregion
assert.equal((await reviewer.run('Review these files.')).text, 'Reviewed a.ts, b.ts, c.ts');

// #region steps
const payments: string[] = [];
const billing = app.defineCustomAgent({ name: 'billing' }, async (session) => {
  await session.run(async () => {
    const receipt = await session.step('charge', async () => {
      payments.push('charged'); // runs once, however many attempts the run takes
      return { id: 'r-1' };
    });
    session.addMessages({ role: 'model', content: [{ text: `Receipt ${receipt.id}` }] });
  });
});
// #endregion
await billing.run('Pay');
assert.deepEqual(payments, ['charged']);
await app.close();
