import assert from 'node:assert/strict';

// #region hello

import { openai } from '@ai-sdk/openai';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';

const app = waymark({ model: openai('gpt-5'), store: sqliteStore('waymark.db') });
const chat = app.defineAgent({ name: 'chat', system: 'You plan trips.' });

const answer = await chat.run('Two days in Lisbon');
console.log(answer.text);

// #endregion

// #region branch
import { z } from 'zod';

const trip = z.object({ likes: z.array(z.string()) });
const note = app.defineTool(
  {
    name: 'note',
    description: 'Saves what the traveller likes',
    input: z.object({ what: z.string() }),
    state: trip,
  },
  ({ what }, { session }) => session.updateCustom(({ likes }) => void likes.push(what)),
);
const planner = app.defineAgent({
  name: 'planner',
  system: ({ state }) => `You plan trips. The traveller likes ${state.likes.join(', ')}.`,
  tools: [note],
  state: trip,
  initialState: { likes: [] },
});

const start = await planner.run('Two days in Lisbon');
const museums = await planner.run('I like museums', { sessionId: start.sessionId });
// Branch from the first turn. Both branches are kept and can be compared.
const food = await planner.run('I like food', { from: start });
const { custom } = await planner.diff(museums, food);
// [{ op: 'replace', path: '/likes/0', value: 'food' }]
// #endregion

assert.notEqual(answer.text, '');
assert.deepEqual(custom, [{ op: 'replace', path: '/likes/0', value: 'food' }]);
await app.close();
