import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { defineDesk } from './desk.ts';

test('a refund waits for an approval', async () => {
  // The script of the model: it asks for the tool, then answers.
  const model = scriptedModel([
    { toolCalls: [{ name: 'refund', input: { order: '7', amount: 40 } }] },
    'Refunded 40 €.',
  ]);
  const app = waymark({ model, store: memoryStore() });
  const desk = defineDesk(app);

  const asked = await desk.run('Refund order 7');
  const requests = asked.interrupts.map(({ toolName, input }) => ({ toolName, input }));
  assert.deepEqual(requests, [{ toolName: 'refund', input: { order: '7', amount: 40 } }]);

  const answer = await desk.resume(asked, (request) => request.approve());
  assert.equal(answer.text, 'Refunded 40 €.');

  const session = await desk.getSession(answer.sessionId);
  assert.deepEqual(session?.state?.custom?.refunds, [{ order: '7', amount: 40 }]);
  await app.close();
});
