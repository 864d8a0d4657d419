/** The example of docs/testing.md, which is a test itself. */
// #region agent-test

import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { fakeClock, scriptedModel } from 'waymark/testing';
import { z } from 'zod';

test('the agent looks the weather up before it answers', async () => {
  const model = scriptedModel([
    { toolCalls: [{ name: 'weather', input: { city: 'Lisbon' } }] },
    'It is sunny.',
  ]);
  const app = waymark({ store: memoryStore() });
  const weather = app.defineTool(
    { name: 'weather', description: 'Weather', input: z.object({ city: z.string() }) },
    ({ city }) => `sunny in ${city}`,
  );
  const chat = app.defineAgent({ name: 'chat', tools: [weather] });

  const { text, usage } = await chat.run('How is Lisbon?', { model });

  expect(text).toBe('It is sunny.');
  expect(model.requests).toHaveLength(2);
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({
    role: 'tool',
    content: [{ toolResponse: { name: 'weather', output: 'sunny in Lisbon' } }],
  });
  expect(usage?.outputTokens).toBeGreaterThan(0);
});

// #endregion

// #region approval-test
test('the agent pays only after an approval', async () => {
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { euros: 20 } }] }, 'Paid.']);
  const app = waymark({ model, store: memoryStore() });
  const pay = app.defineTool(
    {
      name: 'pay',
      description: 'Pays',
      input: z.object({ euros: z.number() }),
      needsApproval: true,
    },
    ({ euros }) => `paid ${euros} euros`,
  );
  const clerk = app.defineAgent({ name: 'clerk', tools: [pay] });

  const asked = await clerk.run('Pay 20 euros');
  expect(asked.finishReason).toBe('interrupted');
  expect(asked.interrupts[0]).toMatchObject({ toolName: 'pay', input: { euros: 20 } });

  const paid = await clerk.resume(asked, (request) => request.approve());
  expect(paid.text).toBe('Paid.');
});

// #endregion

// #region budget-test
test('a session stops at its budget', async () => {
  const usage = { inputTokens: 900, outputTokens: 100, totalTokens: 1_000 };
  const model = scriptedModel([
    { text: 'One.', usage },
    { text: 'Two.', usage },
  ]);
  const app = waymark({ model, store: memoryStore() });
  const chat = app.defineAgent({ name: 'chat', limits: { session: { tokens: 2_000 } } });

  const { sessionId } = await chat.run('one');
  await chat.run('two', { sessionId });

  await expect(chat.run('three', { sessionId })).rejects.toThrow('2000 of 2000 tokens');
  expect(model.requests).toHaveLength(2);
});

// #endregion

// #region server-test
import { createClient } from 'waymark/client';
import { serve } from 'waymark/server';

test('a client starts a background run and reads its result', async () => {
  const app = waymark({ model: scriptedModel(['A poem.']), store: memoryStore() });
  app.defineAgent({ name: 'writer' });
  const server = await serve(app, { port: 0, log: () => {} });
  try {
    const writer = createClient({ url: server.url }).agent('writer');
    const run = await writer.start('Write a poem');
    expect((await run.wait()).text).toBe('A poem.');
  } finally {
    await server.close();
    await app.close();
  }
});
// #endregion

// #region clock-test
test('a turn that takes too long fails, without a real wait', async () => {
  const clock = fakeClock('2026-01-01');
  const model = scriptedModel([{ hang: true }]);
  const app = waymark({ model, store: memoryStore(), clock, onError: () => {} });
  const chat = app.defineAgent({ name: 'chat', limits: { turn: { timeout: 60_000 } } });

  const turn = chat.run('hello', { throwOnError: false });
  await clock.advance(60_000);

  expect(await turn).toMatchObject({
    finishReason: 'failed',
    error: { status: 'DEADLINE_EXCEEDED' },
  });
});

// #endregion

// #region store-contract

import { storeContract } from 'waymark/testing/contract';

storeContract(
  'my store',
  async () => {
    const clock = fakeClock('2026-01-01');
    const store = memoryStore({ clock }); // yours
    return {
      store,
      close: async () => await store.close?.(),
      advance: (ms) => clock.advance(ms),
    };
  },
  { durable: false, runs: 5 },
);
// #endregion
