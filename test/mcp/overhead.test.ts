import { createHook } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { memoryStore, tool, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const turns = 12;

/** How many promises a turn with a tool call makes. */
async function promisesOf(setUp: (app: ReturnType<typeof waymark>) => void): Promise<number> {
  const echo = tool({ name: 'echo', description: 'Echoes.' }, () => 'hi');
  const steps = Array.from({ length: turns }, () => [{ toolCalls: [{ name: 'echo' }] }, 'Done.']);
  const app = waymark({ store: memoryStore(), model: scriptedModel(steps.flat()) });
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [echo] });
  setUp(app);
  // The first turns load what later ones find loaded.
  for (let turn = 0; turn < 3; turn++) await agent.run('Go');
  // Other work of the process may fall into a turn, but not into each.
  let fewest = Number.POSITIVE_INFINITY;
  for (let turn = 3; turn < turns; turn++) {
    let count = 0;
    const hook = createHook({
      init(_, type) {
        if (type === 'PROMISE') count += 1;
      },
    });
    hook.enable();
    await agent.run('Go');
    hook.disable();
    fewest = Math.min(fewest, count);
  }
  await app.close();
  return fewest;
}

test('S310 a turn without a tool source awaits nothing more, also if other agents have MCP servers', async () => {
  const before = await promisesOf(() => {});
  const { mcp } = await import('../../src/mcp/index.ts');
  const after = await promisesOf((app) => {
    const down = mcp('down', { url: 'http://127.0.0.1:1/mcp' });
    app.defineAgent({ name: 'other', system: 'Help.', tools: [down] });
  });
  console.info(`a turn with a tool call: ${before} promises`);
  expect(after).toBe(before);
});
