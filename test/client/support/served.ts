import { z } from 'zod';
import { memoryStore, waymark } from '../../../src/index.ts';
import { type ServeOptions, serve } from '../../../src/server/index.ts';
import { scriptedModel } from '../../../src/testing/scripted-model.ts';

/** The agents that client and hook are tried with, on a real server. What they say depends on what is said to them. */
function createTestApp() {
  const model = scriptedModel({
    patterns: [
      [/^slow (\d+)/, ([, n]) => ({ chunks: words(Number(n)), chunkDelayMs: 15 })],
      [/^say (.*)/, ([, text = '']) => ({ chunks: text.split(/(?<= )/) })],
      [
        /^weather in (\w+)/,
        ([, city = '']) => ({ toolCalls: [{ name: 'weather', input: { city } }] }),
      ],
      [/^note (.*)/, ([, topic = '']) => ({ toolCalls: [{ name: 'note', input: { topic } }] })],
      [/^book (.*)/, ([, what = '']) => ({ toolCalls: [{ name: 'book', input: { what } }] })],
      [/^fail/, { chunks: ['half '], error: new Error('The model broke.') }],
      [/^hang/, { chunks: ['half '], hang: true }],
    ],
    afterTools: (_, results) => {
      const text = results
        .map((result) => (typeof result === 'string' ? result : JSON.stringify(result)))
        .join('\n');
      return text.includes('Slowville') ? { chunks: words(12), chunkDelayMs: 15 } : text;
    },
    otherwise: 'Hello.',
  });
  const app = waymark({ model, store: memoryStore() });
  const weather = app.defineTool(
    { name: 'weather', description: 'Weather of a city', input: z.object({ city: z.string() }) },
    async ({ city }) => ({ city, sky: 'clear' }),
  );
  const note = app.defineTool(
    { name: 'note', description: 'Notes a topic', input: z.object({ topic: z.string() }) },
    async ({ topic }, { session }) => {
      session?.updateCustom((custom) => {
        (custom as { topics: string[] }).topics.push(topic);
      });
      session?.addArtifacts({ name: 'notes.md', parts: [{ text: `# ${topic}` }] });
      return 'noted';
    },
  );
  const book = app.defineTool(
    { name: 'book', description: 'Books something', input: z.object({ what: z.string() }) },
    async ({ what }, { interrupt, resumed }) =>
      resumed === undefined ? interrupt({ price: 40 }) : { booked: what, by: resumed },
  );
  const tools = [weather, note, book];
  const chat = app.defineAgent({
    name: 'chat',
    description: 'Talks',
    tools,
    state: z.object({ topics: z.array(z.string()) }),
    initialState: { topics: [] },
  });
  const portable = app.defineAgent({ name: 'portable', tools, store: false });
  const counter = app.defineCustomAgent(
    {
      name: 'counter',
      state: z.object({ n: z.number() }),
      initialState: { n: 0 },
      status: z.object({ at: z.number() }),
    },
    async (session, { respond }) => {
      await session.run(async () => {
        for (let at = 1; at <= 3; at++) {
          session.updateCustom((custom) => {
            custom.n++;
          });
          await respond.status({ at });
          await respond.artifact({ name: 'count.txt', parts: [{ text: String(at) }] });
          await respond.modelChunk({ content: [{ text: `${at} ` }] });
        }
        session.addMessages({ role: 'model', content: [{ text: '1 2 3 ' }] });
      });
    },
  );
  return { app, model, chat, portable, counter };
}

export type TestApp = ReturnType<typeof createTestApp>;

/** The test agents on a server of their own. */
export async function serveTestApp(
  options: ServeOptions = {},
): Promise<TestApp & AsyncDisposable & { readonly url: string }> {
  const parts = createTestApp();
  const server = await serve(parts.app, { port: 0, log: () => {}, grace: 100, ...options });
  return {
    ...parts,
    url: server.url,
    async [Symbol.asyncDispose]() {
      await server.close();
      await parts.app.close({ deadlineMs: 100 });
    },
  };
}

function words(n: number): string[] {
  return Array.from({ length: n }, (_, at) => `w${at} `);
}
