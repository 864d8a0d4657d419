import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Action } from '../core/action.ts';
import { createRegistry } from '../core/registry.ts';
import { systemClock } from '../core/time.ts';
import type { Message } from '../protocol/message.ts';
import { openToolRequests, requestKey, textOf, toolRequestsOf } from '../protocol/messages.ts';
import { type ScriptedReply, scriptedModel } from '../testing/scripted-model.ts';
import { createGenerator } from './generator.ts';
import { userMessage } from './template.ts';
import { tool } from './tool/tool.ts';

const answers = fc.record(
  {
    reasoning: fc.string(),
    chunks: fc.array(fc.string({ minLength: 1 }), { maxLength: 4 }),
    toolCalls: fc.array(fc.record({ name: fc.constantFrom('quick', 'slow', 'bad', 'missing') }), {
      minLength: 1,
      maxLength: 3,
    }),
  },
  { requiredKeys: ['toolCalls'] },
);

const tools = [
  tool({ name: 'quick', description: 'd' }, () => 0),
  tool({ name: 'slow', description: 'd' }, async (_, { stream }) => {
    for (const step of [1, 2]) {
      await stream(step);
      await Promise.resolve();
    }
    return 'done';
  }),
  tool({ name: 'bad', description: 'd' }, () => {
    throw new Error('bad');
  }),
];

/** Throws unless every provider would take this conversation. */
function checkConversation(messages: readonly Message[]): void {
  expect(openToolRequests(messages)).toEqual([]);
  for (const [at, message] of messages.entries()) {
    const requests = toolRequestsOf(message).map(({ toolRequest }) => requestKey(toolRequest));
    const next = messages[at + 1];
    const responses =
      next?.role === 'tool'
        ? next.content.map((part) =>
            'toolResponse' in part ? requestKey(part.toolResponse) : 'no response',
          )
        : [];
    if (message.role === 'model') expect(responses).toEqual(requests);
    if (message.role === 'tool') expect(messages[at - 1]?.role).toBe('model');
    expect(message.content.length).toBeGreaterThan(0);
  }
}

test('a call that is stopped at any moment leaves a conversation that can continue', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(answers, { minLength: 1, maxLength: 4 }),
      fc.nat(40),
      fc.boolean(),
      async (script, moment, deaf) => {
        const model = scriptedModel([...(script as ScriptedReply[]), 'The end.', 'Next.']);
        const app = createGenerator({
          registry: createRegistry<Action>(),
          clock: systemClock,
          newId: () => 'id',
          model,
        });
        const controller = new AbortController();
        let heard = '';
        let events = 0;
        const asked = userMessage('Go');
        const run = app.generateStream({
          messages: [asked],
          tools,
          signal: controller.signal,
          onChunk: ({ role, content }) => {
            if (role === 'model') heard += textOf({ content });
            if (events++ === moment) controller.abort();
            // A reader that does not come back must not hold the stop up.
            return deaf && events > moment ? new Promise<void>(() => {}) : undefined;
          },
        });
        const outcome = await run.response.then(
          () => 'done',
          (error: { status?: string }) => error.status,
        );
        expect(outcome).toBe(controller.signal.aborted ? 'CANCELLED' : 'done');
        checkConversation([asked, ...run.messages]);
        const kept = run.messages
          .filter(({ role }) => role === 'model')
          .map((message) => textOf(message))
          .join('');
        expect(kept).toBe(heard);

        const next = scriptedModel(['Next.']);
        const messages = [asked, ...run.messages];
        const { text } = await app.generate({ model: next, messages, prompt: 'Go on', tools });
        expect(text).toBe('Next.');
      },
    ),
    { numRuns: 300 },
  );
});
