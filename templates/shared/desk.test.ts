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

  const asked = await desk.runText('Refund order 7');
  assert.equal(asked.finishReason, 'interrupted');
  const { sessionId } = asked;
  assert.deepEqual((await desk.getSession(sessionId))?.state?.custom?.refunds, []);

  const requests = (asked.message?.content ?? []).filter((part) => 'toolRequest' in part);
  const restart = requests.map((part) => ({ ...part, metadata: { resumed: true } }));
  const answer = await desk.run({ resume: { restart } }, { sessionId });
  assert.deepEqual(answer.message?.content, [{ text: 'Refunded 40 €.' }]);

  const session = await desk.getSession(sessionId);
  assert.deepEqual(session?.state?.custom?.refunds, [{ order: '7', amount: 40 }]);
  await app.close();
});
