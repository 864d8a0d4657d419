import { expect, test } from 'vitest';
import type { Action } from '../../core/action.ts';
import { createRegistry } from '../../core/registry.ts';
import { systemClock } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import { createGenerator } from '../generator.ts';
import { modelMessage, userMessage } from '../template.ts';
import { tool } from '../tool/tool.ts';

test('a call looks at the end of a long conversation only', async () => {
  const read = new Set<number>();
  const messages = Array.from({ length: 10_000 }, (_, at): Message => {
    const message = at % 2 === 0 ? userMessage(`u${at}`) : modelMessage(`m${at}`);
    return new Proxy(message, {
      get(target, key) {
        read.add(at);
        return Reflect.get(target, key);
      },
      ownKeys(target) {
        read.add(at);
        return Reflect.ownKeys(target);
      },
    });
  });
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'id',
  });
  let calls = 0;
  app.defineModel({ name: 'm' }, async ({ messages: seen }) => {
    expect(seen[1]).toBe(messages[0]);
    return {
      message: modelMessage(calls++ === 0 ? { toolRequest: { name: 'now', ref: 'r' } } : 'done'),
      finishReason: 'stop',
    };
  });
  const now = tool({ name: 'now', description: 'd' }, () => 1);
  await app.generate({
    model: 'm',
    system: 'S',
    messages,
    prompt: 'next',
    after: [userMessage('reminder')],
    docs: ['a document'],
    tools: [now],
  });
  expect([...read].filter((at) => at < 9_998)).toEqual([]);
});
