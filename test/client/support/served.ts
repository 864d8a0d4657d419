import { z } from 'zod';
import { agentTool, memoryStore, waymark } from '../../../src/index.ts';
import { type ServeOptions, serve } from '../../../src/server/index.ts';
import { type ScriptedReply, scriptedModel } from '../../../src/testing/scripted-model.ts';

/** The agents that client and hook are tried with, on a real server. What they say depends on what is said to them. */
function createTestApp() {
  const model = scriptedModel({
    patterns: [
      [/^slow (\d+)/, ([, n]) => ({ chunks: words(Number(n)), chunkDelay: 15 })],
      [/^say (.*)/, ([, text = '']) => ({ chunks: text.split(/(?<= )/) })],
      [
        /^weather in (\w+)/,
        ([, city = '']) => ({ toolCalls: [{ name: 'weather', input: { city } }] }),
      ],
      [/^note (.*)/, ([, topic = '']) => ({ toolCalls: [{ name: 'note', input: { topic } }] })],
      [/^book (.*)/, ([, what = '']) => ({ toolCalls: [{ name: 'book', input: { what } }] })],
      [
        /^ask both (.*) and (.*)/,
        ([, first = '', second = '']) => ({
          toolCalls: [first, second].map((message) => ({ name: 'chat', input: { message } })),
        }),
      ],
      [/^ask (.*)/, ([, message = '']) => ({ toolCalls: [{ name: 'chat', input: { message } }] })],
      [/^fail/, { chunks: ['half '], error: new Error('The model broke.') }],
      [/^hang/, { chunks: ['half '], hang: true }],
      [
        /^wait for (\S+)(?: with (\d+) words)?/,
        ([, what = '', n = '3']) => waiting(what, words(Number(n))),
      ],
      [/^wait thrice for (\S+)/, ([, what = '']) => waitingAgain(what, 0)],
    ],
    afterTools: (_, results) => {
      const text = results
        .map((result) => (typeof result === 'string' ? result : JSON.stringify(result)))
        .join('\n');
      const [, what] = /"city":"(Waitville\w*)"/.exec(text) ?? [];
      const [, again, round] = /^(\S+)-(\d)$/.exec(text) ?? [];
      if (again !== undefined && round !== '2') return waitingAgain(again, Number(round) + 1);
      return what === undefined ? text : waiting(what);
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
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gate = (what: string): PromiseWithResolvers<void> => {
    const known = gates.get(what) ?? Promise.withResolvers<void>();
    gates.set(what, known);
    return known;
  };
  const wait = app.defineTool(
    { name: 'wait', description: 'Waits', input: z.object({ what: z.string() }) },
    async ({ what }) => {
      await gate(what).promise;
      return what;
    },
  );
  const tools = [weather, note, book, wait];
  const chat = app.defineAgent({
    name: 'chat',
    description: 'Talks',
    tools,
    state: z.object({ topics: z.array(z.string()) }),
    initialState: { topics: [] },
  });
  const boss = app.defineAgent({ name: 'boss', tools: [agentTool(chat)] });
  const former = app.defineAgent({
    name: 'former',
    output: { schema: z.object({ title: z.string() }) },
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
  const closing = app.defineCustomAgent({ name: 'closing' }, async (session, { respond }) => {
    await session.run(async () => {
      for (let at = 0; at < 12; at++) {
        await respond.modelChunk({ content: [{ text: `w${at} ` }] });
      }
      session.addMessages({ role: 'model', content: [{ text: 'done' }] });
    });
    // Known only after the turn has been saved.
    return { ...session.result(), output: { total: 12 } };
  });
  /** Lets a waiting turn continue. */
  const letGo = (what: string): void => gate(what).resolve();
  return { app, model, chat, boss, former, portable, counter, closing, letGo };
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
      await parts.app.close({ grace: 100 });
    },
  };
}

/** Says something, and then stands still until it is let go, so that a test may take its time in the middle of a turn. */
function waiting(what: string, chunks = words(3), chunkDelay = 0): ScriptedReply {
  return { chunks, chunkDelay, toolCalls: [{ name: 'wait', input: { what } }] };
}

/** The same three times, with other words: it stands still at `what-0`, `what-1` and `what-2`. */
function waitingAgain(what: string, round: number): ScriptedReply {
  return waiting(`${what}-${round}`, words(20, round * 20), 15);
}

function words(n: number, from = 0): string[] {
  return Array.from({ length: n }, (_, at) => `w${from + at} `);
}
