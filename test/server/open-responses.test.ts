import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { allEvents, post, startServer } from './kit.ts';

// The seven cases of the compliance tests of Open Responses, which are part of a website and not of a package.

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

const text = expect.any(String);
const number = expect.any(Number);
const boolean = expect.any(Boolean);
const list = expect.any(Array);
const object = expect.any(Object);
const orNull = (kind: unknown): object =>
  expect.toSatisfy((value) => value === null || fits(value, kind));
const fits = (value: unknown, kind: Any): boolean => kind.asymmetricMatch(value);

/** The fields that a response must have. */
const response = {
  id: text,
  object: 'response',
  created_at: number,
  completed_at: orNull(number),
  status: text,
  incomplete_details: orNull(object),
  model: text,
  previous_response_id: orNull(text),
  instructions: orNull(text),
  output: list,
  error: orNull(object),
  tools: list,
  tool_choice: expect.anything(),
  truncation: expect.stringMatching(/^(auto|disabled)$/),
  parallel_tool_calls: boolean,
  text: { format: object },
  top_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  top_logprobs: number,
  temperature: number,
  reasoning: orNull(object),
  user: orNull(text),
  usage: orNull(object),
  max_output_tokens: orNull(number),
  max_tool_calls: orNull(number),
  store: boolean,
  background: boolean,
  service_tier: text,
  metadata: object,
  safety_identifier: orNull(text),
  prompt_cache_key: orNull(text),
};

const message = {
  type: 'message',
  id: text,
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: list, logprobs: list }],
};
const call = {
  type: 'function_call',
  id: text,
  call_id: text,
  name: 'get_weather',
  arguments: '{"location":"San Francisco"}',
  status: 'completed',
};
const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { location: { type: 'string' } } },
};
const says = (role: string, content: unknown): object => ({ type: 'message', role, content });

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  const model = scriptedModel({
    patterns: [
      [/weather/, { toolCalls: [{ name: 'get_weather', input: { location: 'San Francisco' } }] }],
    ],
    otherwise: 'Hello to you.',
  });
  const app = waymark({ model, store: memoryStore() });
  app.defineAgent({ name: 'desk' });
  server = await startServer({ app, openai: { allow: ['instructions', 'history'] } });
});
afterAll(() => server.close());

const create = async (body: object): Promise<Any> => {
  const answer = await post(`${server.url}/openai/v1/responses`, { model: 'desk', ...body });
  expect(answer.status).toBe(200);
  return answer.json();
};
const stream = async (body: object): Promise<Any[]> => {
  const answer = await post(`${server.url}/openai/v1/responses`, {
    model: 'desk',
    stream: true,
    ...body,
  });
  return (await allEvents(answer)).map(({ data }) => data);
};

describe('Open Responses', () => {
  const image = 'data:image/png;base64,iVBORw0KGgo=';
  test.each([
    ['a text', { input: [says('user', 'Say hello in 3 words.')] }],
    ['a system prompt', { input: [says('system', 'You are a pirate.'), says('user', 'Hello.')] }],
    [
      'an image',
      {
        input: [
          says('user', [
            { type: 'input_text', text: 'Look.' },
            { type: 'input_image', image_url: image },
          ]),
        ],
      },
    ],
    [
      'several turns',
      {
        input: [
          says('user', 'I am Alice.'),
          says('assistant', 'Hello.'),
          says('user', 'Who am I?'),
        ],
      },
    ],
  ])('%s (S350)', async (_, body) => {
    const answer = await create(body);
    expect(answer).toMatchObject({ ...response, status: 'completed', output: [message] });
    expect(answer.usage).toMatchObject({
      input_tokens: number,
      output_tokens: number,
      total_tokens: number,
      input_tokens_details: { cached_tokens: number },
      output_tokens_details: { reasoning_tokens: number },
    });
  });

  test('a function call (S350)', async () => {
    const input = [says('user', "What's the weather like in San Francisco?")];
    const answer = await create({ input, tools: [weather] });
    expect(answer).toMatchObject({ ...response, output: [call] });
    expect(answer.tools).toEqual([{ ...weather, description: null, strict: null }]);
  });

  test('a stream (S350)', async () => {
    const events = await stream({ input: [says('user', 'Count from 1 to 5.')] });
    for (const event of events) {
      expect(event).toMatchObject({ type: text, sequence_number: number });
      if ('response' in event) expect(event.response).toMatchObject(response);
    }
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { status: 'completed', output: [message] },
    });
  });

  test('a function call in a stream (S350)', async () => {
    const events = await stream({ input: [says('user', 'The weather?')], tools: [weather] });
    const types = events.map(({ type, item }) => (item ? `${type} ${item.type}` : type));
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added function_call',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done function_call',
      'response.completed',
    ]);
    expect(events.at(-1).response).toMatchObject({ ...response, output: [call] });
  });
});
