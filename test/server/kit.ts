import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../src/core/time.ts';
import type { Model } from '../../src/generate/model.ts';
import { type App, memoryStore, type WebhookOptions, waymark } from '../../src/index.ts';
import { type RunningServer, type ServeOptions, serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

/** A model that does what the user's message says, so that one server serves all tests. */
export function talkative(): ReturnType<typeof scriptedModel> {
  return scriptedModel({
    patterns: [
      // `count 20 5`: twenty pieces, five milliseconds apart.
      [
        /^count (\d+) ?(\d*)/,
        ([, pieces, ms]) => ({
          chunks: Array.from({ length: Number(pieces) }, (_, at) => `${at} `),
          chunkDelay: Number(ms),
        }),
      ],
      // `hold /a/file 20`: twenty pieces; while the file is there, ten of them and no end.
      [
        /^hold (\S+) (\d+)/,
        ([, file = '', pieces]) => {
          const hang = existsSync(file);
          const length = hang ? 10 : Number(pieces);
          return { chunks: Array.from({ length }, (_, at) => `${at} `), hang };
        },
      ],
      [/^hang/, { chunks: ['It ', 'hangs'], hang: true }],
      [/^fail/, { text: 'Before', error: new Error('secret of the model') }],
      [/^think/, { reasoning: 'Hm.', text: 'Thought.' }],
      [
        /^weather in (\w+)/,
        ([, city = '']) => ({
          text: 'Let me look.',
          toolCalls: [{ name: 'weather', input: { city } }],
        }),
      ],
      [
        /^transfer (\d+)/,
        ([, sum]) => ({ toolCalls: [{ name: 'transfer', input: { sum: Number(sum) } }] }),
      ],
      [/^ask/, { toolCalls: [{ name: 'question', input: { text: 'Which colour?' } }] }],
      [
        /^remember (\w+)/,
        ([, topic = '']) => ({ toolCalls: [{ name: 'remember', input: { topic } }] }),
      ],
      [/^who am i/, { toolCalls: [{ name: 'whoami' }] }],
      [/^say (.*)/s, ([, text = '']) => ({ text })],
      [
        /^call (\w+) (.*)/s,
        ([, name = '', input = '{}']) => ({ toolCalls: [{ name, input: JSON.parse(input) }] }),
      ],
      [
        /^repeat (\d+) (\w+) (.*)/s,
        ([, times, name = '', input = '{}']) => ({
          toolCalls: Array.from({ length: Number(times) }, () => ({
            name,
            input: JSON.parse(input),
          })),
        }),
      ],
      [/^umlaut/, { chunks: ['grüße ', '🌍', ' — ', '日本語'] }],
    ],
    otherwise: ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'user');
      return `You said ${said.length} things.`;
    },
  });
}

/** Webhooks to receivers of the tests. */
export const testWebhooks = {
  secret: `whsec_${btoa('a secret for the webhooks of tests')}`,
  allowLoopback: true,
};

/** An app with agents for everything that a server must carry. */
export function createTestApp({
  store = memoryStore(),
  claimTtl = 60_000,
  clock = systemClock,
  model = talkative(),
  webhooks,
}: {
  readonly store?: Store;
  readonly claimTtl?: number;
  readonly clock?: Clock;
  readonly model?: Model;
  readonly webhooks?: WebhookOptions;
} = {}): App {
  const app = waymark({ model, store, claimTtl, clock, ...(webhooks && { webhooks }) });
  const object = (properties: object): { type: 'object'; properties: object } => ({
    type: 'object',
    properties,
  });
  const weather = app.defineTool(
    {
      name: 'weather',
      description: 'The weather of a city',
      input: object({ city: { type: 'string' } }),
    },
    async (input) => `Sunny in ${(input as { city: string }).city}`,
  );
  const transfer = app.defineTool(
    { name: 'transfer', description: 'Moves money', input: object({ sum: { type: 'number' } }) },
    async (input, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ sum: (input as { sum: number }).sum });
      return { moved: (input as { sum: number }).sum, resumed: resumed ?? null };
    },
  );
  const question = app.defineInterrupt({
    name: 'question',
    description: 'Asks the user',
    input: object({ text: { type: 'string' } }),
  });
  const remember = app.defineTool(
    {
      name: 'remember',
      description: 'Remembers a topic',
      input: object({ topic: { type: 'string' } }),
    },
    async (input, { session }) => {
      const { topic } = input as { topic: string };
      if (session?.custom === undefined) session?.setCustom({ topics: [topic] });
      else {
        session.updateCustom((custom) => {
          (custom as { topics: string[] }).topics.push(topic);
        });
      }
      session?.addArtifacts({ name: 'topics.md', parts: [{ text: `# ${topic}` }] });
      return 'noted';
    },
  );
  const whoami = app.defineTool(
    { name: 'whoami', description: 'Says what the context says', input: object({}) },
    async (_, { context }) => context as never,
  );
  app.defineAgent({
    name: 'chat',
    description: 'Does what it is told',
    system: 'You are a test.',
    tools: [weather, transfer, question, remember, whoami],
  });
  app.defineAgent({ name: 'other', description: 'Another agent' });
  app.defineAgent({ name: 'held', description: 'Its state is held by the client', store: false });
  app.defineAgent({
    name: 'sealed',
    description: 'Its state is held by the client, and signed',
    store: false,
    clientState: { secret: 'a secret of thirty-two characters' },
  });
  app.defineCustomAgent(
    { name: 'busy', description: 'Sends many chunks' },
    async (session, { respond }) => {
      await session.run(async (input) => {
        const text =
          input.message?.content.map((part) => ('text' in part ? part.text : '')).join('') ?? '';
        const count = Math.min(Number(text), 200_000);
        for (let at = 0; at < count; at++) {
          await respond.modelChunk({ role: 'model', content: [{ text: `${at} ` }] });
        }
        session.addMessages({ role: 'model', content: [{ text: `${count} pieces` }] });
      });
    },
  );
  return app;
}

/** A server on a free port, closed after the test. */
export async function startServer(
  options: ServeOptions & { readonly app?: App } = {},
): Promise<RunningServer & { readonly app: App }> {
  const { app = createTestApp(), ...rest } = options;
  const server = await serve(app, { port: 0, grace: 0, log: () => {}, ...rest });
  return {
    ...server,
    app,
    close: async () => {
      await server.close();
      await app.close({ grace: 0 });
    },
  };
}

/** An event of a native stream. */
export interface SseEvent {
  readonly event: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly data: any;
}

/** Reads server-sent events; written for the tests, so that they do not trust the client. */
export async function* readEvents(response: Response): AsyncGenerator<SseEvent> {
  let buffer = '';
  const decoder = new TextDecoder();
  for await (const piece of response.body ?? []) {
    buffer += decoder.decode(piece, { stream: true });
    for (let end = buffer.indexOf('\n\n'); end !== -1; end = buffer.indexOf('\n\n')) {
      const fields = Object.fromEntries(
        buffer
          .slice(0, end)
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      buffer = buffer.slice(end + 2);
      if (fields.data === undefined) continue;
      const { event = 'message', id, data } = fields;
      yield {
        event,
        ...(id !== undefined && { id }),
        data: data === '[DONE]' ? data : JSON.parse(data),
      };
    }
  }
}

/** All events of a stream. */
export async function allEvents(response: Response): Promise<readonly SseEvent[]> {
  const events: SseEvent[] = [];
  for await (const event of readEvents(response)) events.push(event);
  return events;
}

/** Posts JSON. */
export function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Asks for a stream of a turn. */
export function streamTurn(
  url: string,
  text: string,
  {
    agent = 'chat',
    init,
    headers = {},
  }: { agent?: string; init?: object; headers?: Record<string, string> } = {},
): Promise<Response> {
  return post(
    `${url}/agents/${agent}/turns`,
    { ...(init && { init }), input: userInput(text) },
    { accept: 'text/event-stream', ...headers },
  );
}

/** An input with one text. */
export function userInput(text: string): {
  message: { role: 'user'; content: { text: string }[] };
} {
  return { message: { role: 'user', content: [{ text }] } };
}

/** The answer to a GET, or another method without a body, as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
export async function get(url: string, init: RequestInit = {}): Promise<any> {
  const response = await fetch(url, init);
  return response.status === 204 ? undefined : response.json();
}

/** The text that a stream carried. */
export function textOf(events: readonly SseEvent[]): string {
  return events
    .flatMap(({ data }) => data.modelChunk?.content ?? [])
    .map(({ text = '' }) => text)
    .join('');
}
