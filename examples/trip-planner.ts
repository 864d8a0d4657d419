import type { App, ModelRef } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const trip = z.object({
  city: z.string().optional(),
  days: z.number().optional(),
  topics: z.array(z.string()),
  booked: z.array(z.string()),
});

/** A chat with tools, typed state, and a booking that needs approval. */
export function defineTripPlanner(app: App, model: ModelRef = script()) {
  const weather = app.defineTool(
    {
      name: 'weather',
      description: 'The weather in a city for the next days.',
      input: z.object({ city: z.string() }),
      state: trip,
    },
    ({ city }, { session }) => {
      session.updateCustom((draft) => {
        draft.city = city;
      });
      return forecasts[city] ?? { sky: 'clear', high: 21 };
    },
  );
  const remember = app.defineTool(
    {
      name: 'remember',
      description: 'Notes what the traveller cares about.',
      input: z.object({ topic: z.string(), days: z.number().optional() }),
      state: trip,
    },
    ({ topic, days }, { session }) => {
      session.updateCustom((draft) => {
        if (!draft.topics.includes(topic)) draft.topics.push(topic);
        if (days !== undefined) draft.days = days;
      });
      return 'noted';
    },
  );
  const book = app.defineTool(
    {
      name: 'book',
      description: 'Books something and pays for it. A person must approve.',
      input: z.object({ what: z.string(), euros: z.number() }),
      state: trip,
    },
    ({ what, euros }, { session, resumed, interrupt, idempotencyKey }) => {
      // Pay only after an explicit approval.
      if (resumed === undefined) interrupt({ question: `Book ${what} for ${euros} €?` });
      if (!isApproved(resumed)) return { declined: what };
      session.updateCustom((draft) => {
        draft.booked.push(what);
      });
      return { booked: what, reference: idempotencyKey.slice(0, 8) };
    },
  );
  return app.defineAgent({
    name: 'trip-planner',
    description:
      'Plans short trips. Try “Two days in Lisbon”, then “I like museums”, then “Book a small hotel”.',
    model,
    system:
      'You plan short trips. Use the tools. Keep answers short. The traveller likes: {{#each @state.topics}}{{this}} {{/each}}',
    tools: [weather, remember, book],
    state: trip,
    initialState: { topics: [], booked: [] },
  });
}

function isApproved(resumed: unknown): boolean {
  if (resumed === true) return true;
  return (
    typeof resumed === 'object' &&
    resumed !== null &&
    'approved' in resumed &&
    resumed.approved === true
  );
}

const forecasts: Readonly<Record<string, { readonly sky: string; readonly high: number }>> = {
  Lisbon: { sky: 'sunny', high: 24 },
  Bergen: { sky: 'rain', high: 9 },
  Kyoto: { sky: 'cloudy', high: 17 },
};

function script(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [/^no\b/i, 'Then I leave it at that. What else would you like?'],
        [
          /weather.*?\bin (\w+)|(\w+).*weather/i,
          ([, a, b]) => ({
            toolCalls: [{ name: 'weather', input: { city: capital(a ?? b ?? 'Lisbon') } }],
          }),
        ],
        [
          /(\w+) days? in (\w+)/i,
          ([, count, city = 'Lisbon']) => ({
            chunks: words(`Let me look at ${capital(city)} and make a note. `),
            chunkDelay: 20,
            toolCalls: [
              { name: 'weather', input: { city: capital(city) } },
              { name: 'remember', input: { topic: 'walking', days: numberOf(count ?? '2') } },
            ],
          }),
        ],
        [
          /\b(museums?|food|music|beach|walking)\b/i,
          ([, topic = 'food']) => ({
            toolCalls: [{ name: 'remember', input: { topic: topic.toLowerCase() } }],
          }),
        ],
        [
          /\bbook\b\s*(\S.*)?/i,
          ([, what = 'a small hotel']) => ({
            toolCalls: [{ name: 'book', input: { what: what.trim(), euros: 120 } }],
          }),
        ],
      ],
      afterTools: (_, results) => {
        const said = results.map((result) => {
          if (result === 'noted') return 'I will keep that in mind.';
          if (typeof result === 'object' && result !== null && 'sky' in result) {
            return `It will be **${result.sky}**, up to ${result.high} °C.`;
          }
          if (typeof result === 'object' && result !== null && 'booked' in result) {
            return `Booked: ${result.booked} (reference \`${result.reference}\`).`;
          }
          return 'Then I leave it at that.';
        });
        return { chunks: words(`${said.join(' ')} What else would you like?`), chunkDelay: 20 };
      },
      otherwise: {
        chunks: words(
          'I plan short trips. Try **“Two days in Lisbon”**, then *“I like museums”*, and at last *“Book a small hotel”*.',
        ),
        chunkDelay: 20,
      },
    },
    { name: 'script' },
  );
}

function words(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
}

function numberOf(word: string): number {
  return (
    { one: 1, two: 2, three: 3, four: 4, five: 5 }[word.toLowerCase()] ??
    (Number.parseInt(word, 10) || 2)
  );
}
