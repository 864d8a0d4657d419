import { expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { systemClock } from '../../src/core/clock.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

/** Keeps the thread, as a machine that sleeps or a long computation does. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('a process that stood still for longer than its claims does not take its own runs away', async () => {
  const app = waymark({ store: sqliteStore(':memory:'), claimTtl: 60 });
  let calls = 0;
  const block = app.defineTool({ name: 'block', description: 'Blocks' }, async () => {
    calls++;
    stall(100);
    // Time for whoever looks for expired claims.
    await systemClock.sleep(40);
    return 'done';
  });
  const agent = app.defineAgent({
    name: 'blocked',
    tools: [block],
    model: scriptedModel({
      patterns: [],
      afterTools: () => 'answer',
      otherwise: { toolCalls: [{ name: 'block' }] },
    }),
  });
  for (let turn = 0; turn < 10; turn++) {
    const { error } = await agent.runText('go', { sessionId: 's', accept: true });
    expect(error).toBeUndefined();
  }
  expect(calls).toBe(10);
  await app.close();
});
