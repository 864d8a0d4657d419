import { expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { movableClock } from '../support/movable-clock.ts';

const claimTtl = 60_000;

test('a process that stood still for longer than its claims does not take its own runs away', async () => {
  const { clock, advance } = movableClock();
  const app = waymark({ store: sqliteStore(':memory:', { clock }), clock, claimTtl });
  let calls = 0;
  const block = app.defineTool({ name: 'block', description: 'Blocks' }, async () => {
    calls++;
    // As after a machine has slept: all timers are late at once, and one of them looks for expired claims.
    advance(2 * claimTtl);
    expect(await app.engine.recover()).toBe(0);
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
    const { error } = await agent.runText('go', {
      sessionId: 's',
      accept: true,
      throwOnError: false,
    });
    expect(error).toBeUndefined();
  }
  expect(calls).toBe(10);
  await app.close();
});
