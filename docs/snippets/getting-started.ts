import assert from 'node:assert/strict';

// #region define

import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

// A script that works without a key. To use a real model, replace it: openai('gpt-5')
const model = scriptedModel({
  patterns: [
    [/weather/i, { toolCalls: [{ name: 'weather', input: { city: 'Lisbon' } }] }], // a tool call
  ],
  afterTools: () => 'It is sunny in Lisbon.',
  otherwise: ({ messages }) =>
    `You have said ${messages.filter(({ role }) => role === 'user').length} things.`,
});

export const app = waymark({ model, store: sqliteStore('waymark.db') });

const weather = app.defineTool(
  {
    name: 'weather',
    description: 'The weather in a city',
    input: z.object({ city: z.string() }),
  },
  ({ city }) => ({ city, sky: 'sunny', high: 24 }),
);

export const chat = app.defineAgent({
  name: 'chat',
  system: 'You are a helpful assistant.',
  tools: [weather],
});
// #endregion

// #region run
const first = await chat.run('What is the weather in Lisbon?');
console.log(first.text); // It is sunny in Lisbon.

const second = await chat.run('And what did I say?', { sessionId: first.sessionId });
// #endregion
assert.equal(first.text, 'It is sunny in Lisbon.');
assert.equal(second.text, 'You have said 2 things.');

// #region once
const { text } = await app.generate('Suggest a title for this trip.');
// #endregion
assert.equal(text, 'You have said 1 things.');

// #region stream
const { sessionId } = first;
const turn = chat.stream('Tell me more', { sessionId });
for await (const text of turn.textStream) process.stdout.write(text);
const { finishReason, snapshotId } = await turn.output;
// #endregion
assert.equal(finishReason, 'stop');

// #region back
await chat.restore(first);
const another = await chat.run('Something else', { sessionId });

const { items } = await chat.listSnapshots(sessionId, { includeOrphaned: true });
for (const { turnIndex, orphaned, parentId } of items) console.log(turnIndex, orphaned, parentId);
// 0 false undefined
// 1 true  …          the branch before the restore
// 2 true  …
// 1 false …          the new one, from the same parent
// #endregion
assert.deepEqual(
  items.map(({ turnIndex, orphaned }) => [turnIndex, orphaned]),
  [
    [0, false],
    [1, true],
    [2, true],
    [1, false],
  ],
);
assert.notEqual(another.snapshotId, snapshotId);
await app.close();
