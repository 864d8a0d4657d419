import { type App, memoryStore, waymark } from '../../src/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

/** Holds up a model in the middle of its answer. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function createGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** What the model of `desk` is asked, for tests to look at. */
export type DeskModel = ReturnType<typeof scriptedModel>;

/** An app with what the OpenAI endpoints need: functions of the caller, approvals, structured output, an answer in pieces. */
export function createOpenAiApp({
  store = memoryStore(),
  gate = createGate(),
  claimTtl = 60_000,
}: {
  readonly store?: Store;
  readonly gate?: Gate;
  readonly claimTtl?: number;
} = {}): { readonly app: App; readonly model: DeskModel } {
  const model = scriptedModel({
    patterns: [
      [
        /^call (\w+) (.*)/,
        ([, name = '', input = '{}']) => ({
          text: 'One moment.',
          toolCalls: [{ name, input: JSON.parse(input) }],
        }),
      ],
      [/^both/, { toolCalls: [1, 2].map((day) => ({ name: 'weather', input: { day } })) }],
      [/^say (.*)/s, ([, text = '']) => ({ chunks: text.split(/(?<= )/) })],
      [/^think (.*)/, ([, text = '']) => ({ reasoning: 'Hm.', text })],
      [/^long/, { text: 'It was a dark and', finishReason: 'length' }],
      [/^fail/, { text: 'Before', error: new Error('secret of the model') }],
      [/^hang/, { chunks: ['It ', 'hangs'], hang: true }],
    ],
    otherwise: ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'user');
      return `You said ${said.length} things.`;
    },
  });
  const app = waymark({ model, store, claimTtl });
  const transfer = app.defineTool(
    {
      name: 'transfer',
      description: 'Moves money',
      input: { type: 'object', properties: { sum: { type: 'number' } } },
    },
    async (input, { interrupt, resumed }) => {
      const { sum } = input as { sum: number };
      if (resumed === undefined) interrupt({ sum });
      return { moved: sum };
    },
  );
  const lookup = app.defineTool(
    { name: 'lookup', description: 'Looks something up', input: { type: 'object' } },
    async () => 'secret of the lookup',
  );
  const ask = app.defineInterrupt({
    name: 'ask',
    description: 'Asks the user',
    input: { type: 'object' },
    output: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] },
  });
  app.defineAgent({ name: 'desk', system: 'You are a desk.', tools: [transfer, lookup, ask] });
  app.defineAgent({
    name: 'geo',
    system: 'Find.',
    output: { schema: { type: 'object', properties: { city: { type: 'string' } } } },
  });
  app.defineModel({ name: 'gated' }, async (_, { stream, signal }) => {
    for (const text of ['a', 'b']) await stream({ content: [{ text }] });
    const left = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    await Promise.race([gate.opened, left]);
    signal.throwIfAborted();
    for (const text of ['c', 'd', 'ef']) await stream({ content: [{ text }] });
    return { message: { role: 'model', content: [{ text: 'abcdef' }] }, finishReason: 'stop' };
  });
  app.defineAgent({ name: 'gated', model: 'gated' });
  app.defineAgent({ name: 'held', store: false });
  app.defineCustomAgent({ name: 'custom' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'By hand.' }] });
    });
  });
  return { app, model };
}
