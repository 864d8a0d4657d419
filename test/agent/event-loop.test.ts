import { describe, expect, test } from 'vitest';
import { memoryStore, type Store, waymark } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

const kinds: readonly (readonly [string, () => Store])[] = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
];

describe.each(kinds)('turns one after the other, with an instant model and %s', (_, open) => {
  test('S330: let timers run', async () => {
    const store = open();
    const app = waymark({ store });
    const reply = { role: 'model' as const, content: [{ text: 'done' }] };
    app.defineModel({ name: 'instant' }, async () => ({ message: reply, finishReason: 'stop' }));
    const agent = app.defineAgent({ name: 'agent', model: 'instant' });
    let isDue = false;
    setTimeout(() => {
      isDue = true;
    }, 1);
    let turns = 0;
    for (; !isDue && turns < 20_000; turns++) await agent.run('hello', { sessionId: 'one' });
    expect(isDue).toBe(true);
    await app.close();
    await store.close?.();
  });
});
