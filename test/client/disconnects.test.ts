import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Chunk, client } from '../../src/client/index.ts';
import { cuttingFetch } from './support/cutting-fetch.ts';
import { serveTestApp, type TestApp } from './support/served.ts';

let served: Awaited<ReturnType<typeof serveTestApp>>;
beforeAll(async () => {
  served = await serveTestApp();
});
afterAll(() => served[Symbol.asyncDispose]());

async function read(chunks: AsyncIterable<Pick<Chunk, 'modelChunk'>>): Promise<string> {
  let text = '';
  for await (const { modelChunk } of chunks) {
    for (const part of modelChunk?.content ?? []) if ('text' in part) text += part.text;
  }
  return text;
}

const whole = Array.from({ length: 12 }, (_, at) => `w${at} `).join('');

test('whoever loses the line again and again ends with exactly the chunks of the turn', async () => {
  let cuts = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 2, maxLength: 10 }),
      async (places) => {
        const next = [...places];
        const fetch = cuttingFetch((url) => {
          const place = next.shift();
          if (place !== undefined) cuts++;
          // The first line lives until the turn has told its id.
          return place !== undefined && url.endsWith('/turns') ? place + 400 : place;
        });
        const agent = client({
          url: served.url,
          agent: 'chat',
          fetch,
          reconnect: { delay: 1, attempts: 20 },
        });
        const { stream, output } = agent.streamText('slow 12');
        expect(await read(stream)).toBe(whole);
        expect(await output).toMatchObject({ finishReason: 'stop' });
      },
    ),
    { numRuns: 12 },
  );
  // The first line of each turn is cut before its end, and so there is a second one.
  expect(cuts).toBeGreaterThanOrEqual(24);
});

test('whoever loses the line at the end still gets the structured output', async () => {
  for (const place of [450, 600, 700, 800, 900, 1_000]) {
    let cuts = 0;
    const fetch = cuttingFetch(() => (cuts++ === 0 ? place : undefined));
    const agent = client<TestApp['former']>({
      url: served.url,
      agent: 'former',
      fetch,
      reconnect: { delay: 1 },
    });
    const { output } = await agent.streamText('say {"title":"Plan"}').output;
    expect([place, output]).toEqual([place, { title: 'Plan' }]);
  }
});

test('S185 whoever loses the line gets what a custom handler returned after its last turn', async () => {
  for (const place of [450, 700, 1_000]) {
    let cuts = 0;
    const fetch = cuttingFetch(() => (cuts++ === 0 ? place : undefined));
    const agent = client<TestApp['closing']>({
      url: served.url,
      agent: 'closing',
      fetch,
      reconnect: { delay: 50 },
    });
    const { stream, output } = agent.streamText('go');
    expect(await read(stream)).toBe(whole);
    expect(await output).toMatchObject({ finishReason: 'stop', output: { total: 12 } });
    expect(cuts).toBeGreaterThan(1);
  }
});

test('many at once lose their lines and none its chunks', async () => {
  const texts = await Promise.all(
    Array.from({ length: 20 }, async (_, at) => {
      let lines = 0;
      const fetch = cuttingFetch(() =>
        lines++ < 10 ? 420 + ((at * 37 + lines * 91) % 300) : undefined,
      );
      const agent = client({ url: served.url, agent: 'chat', fetch, reconnect: { delay: 1 } });
      return await read(agent.streamText('slow 12').stream);
    }),
  );
  expect(new Set(texts)).toEqual(new Set([whole]));
});
