import assert from 'node:assert/strict';

// #region app

import { openai } from '@ai-sdk/openai';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { z } from 'zod';

const trip = z.object({ likes: z.array(z.string()) });
const app = waymark({ model: openai('gpt-5'), store: sqliteStore('waymark.db') });

const note = app.defineTool(
  {
    name: 'note',
    description: 'Notes a taste',
    input: z.object({ what: z.string() }),
    state: trip,
  },
  ({ what }, { session }) => session.updateCustom(({ likes }) => void likes.push(what)),
);
const chat = app.defineAgent({
  name: 'chat',
  system: ({ state }) => `You plan trips. The traveller likes ${state.likes.join(', ')}.`,
  tools: [note],
  state: trip,
  initialState: { likes: [] },
});

const start = await chat.run('Two days in Lisbon');
console.log(start.text);
const museums = await chat.run('I like museums', { sessionId: start.sessionId });
// Branch from the first turn. Both branches are kept, and can be compared.
const food = await chat.run('I like food', { from: start });
const { custom } = await chat.diff(museums, food);
// [{ op: 'replace', path: '/likes/0', value: 'food' }]
// #endregion

assert.deepEqual(custom, [{ op: 'replace', path: '/likes/0', value: 'food' }]);
await app.close();
