import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [
    [
      /hotel in (\w+)/,
      ([, city = 'Lisbon']) => ({ toolCalls: [{ name: 'find_hotel', input: { city } }] }),
    ],
    [/book/, { toolCalls: [{ name: 'book', input: { hotel: 'Hotel Lisbon' } }] }],
  ],
  afterTools: ({ messages }, results) => {
    const isBrief = JSON.stringify(messages).includes('one sentence');
    return isBrief ? 'Done.' : `Done, with pleasure: ${JSON.stringify(results)}`;
  },
  otherwise: 'How can I help?',
});

// #region app

import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { z } from 'zod';

export const app = waymark({ model, store: sqliteStore('trips.db') });

const trip = z.object({ hotel: z.string().optional() });

const findHotel = app.defineTool(
  { name: 'find_hotel', description: 'Finds a hotel', input: z.object({ city: z.string() }) },
  ({ city }) => ({ name: `Hotel ${city}`, price: 120 }),
);
const book = app.defineTool(
  {
    name: 'book',
    description: 'Books a hotel',
    input: z.object({ hotel: z.string() }),
    state: trip,
  },
  ({ hotel }, { session }) => {
    session.updateCustom((draft) => {
      draft.hotel = hotel;
    });
    return 'booked';
  },
);

export const agent = app.defineAgent({
  name: 'trip',
  system: 'Plan trips.',
  state: trip,
  initialState: {},
  tools: [findHotel, book],
});
// #endregion

const { sessionId } = await agent.run('Find me a hotel in Lisbon');
await agent.run('Please book it', { sessionId });

// #region replay

import { replay } from 'waymark/replay';

const report = await replay(app, {
  sessions: { agent: 'trip', limit: 50 },
  with: { system: 'Plan trips. Answer in one sentence.' },
});

for (const { turnIndex, divergences } of report.turns) {
  for (const { path, recorded, replayed } of divergences) {
    console.log(turnIndex, path, recorded, replayed);
  }
}
console.log(report.recorded.tokens, report.replayed.tokens);
// #endregion

assert.deepEqual(
  report.turns.map(({ divergences }) => divergences.map(({ path }) => path)),
  [['/text'], ['/text']],
);

// #region score

import { contains, exact, judge } from 'waymark/replay';

const scored = await replay(app, {
  sessions: { agent: 'trip' },
  with: { system: 'Plan trips. Answer in one sentence.' },
  ignore: ['text'],
  score: [
    exact('toolCalls'),
    contains('text', 'Done'),
    judge(model, 'The answer is polite.', { budget: { tokens: 50_000 } }),
    function brief({ replayed }) {
      return replayed.messages.length <= 3;
    },
  ],
  budget: { tokens: 500_000 },
});
// #endregion

assert.equal(scored.scores['exact toolCalls'], 1);
assert.equal(scored.scores.brief, 1);
assert.equal(scored.same, true);

// #region code

import { scriptedModelFrom } from 'waymark/replay';

const code = await replay(app, {
  sessions: { agent: 'trip' },
  with: (session) => ({ model: scriptedModelFrom(session) }),
  tools: 'live',
});
// #endregion

assert.equal(code.same, true);

// #region tools

const mixed = await replay(app, {
  sessions: sessionId,
  with: { system: 'Plan trips. Prefer cheap hotels.' },
  tools: {
    find_hotel: 'live',
    book: ({ recorded }) => recorded?.output ?? 'booked',
  },
});
// #endregion

assert.equal(mixed.turns.length, 2);
await app.close();
