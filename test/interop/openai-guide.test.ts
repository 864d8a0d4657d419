/** The code of docs/openai.md. */
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { streamText } from 'ai';
import { expect, test, vi } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';

vi.spyOn(console, 'log').mockImplementation(() => {});
vi.spyOn(process.stdout, 'write').mockImplementation(() => true);

const model = scriptedModel({
  patterns: [
    [/weather/, { toolCalls: [{ name: 'get_weather', input: { city: 'Oslo' } }] }],
    [/refund/, { toolCalls: [{ name: 'refund', input: { order: 7 } }] }],
    [/report/, { chunks: ['All ', 'is ', 'well.'] }],
  ],
  afterTools: (_, [result]) => `Done: ${JSON.stringify(result)}`,
  otherwise: ({ messages }) => `Message ${messages.filter(({ role }) => role === 'user').length}.`,
});
const app = waymark({ model, store: memoryStore() });
const refund = app.defineTool(
  { name: 'refund', description: 'Refunds an order', input: { type: 'object' } },
  async (_, { interrupt, resumed }) => {
    if (resumed === undefined) interrupt({ message: 'Refund this order?' });
    return 'refunded';
  },
);
app.defineAgent({ name: 'desk', tools: [refund] });
const server = await serve(app, { port: 0, openai: true, log: () => {} });
const baseURL = `${server.url}/openai/v1`;

// #region client
import OpenAI from 'openai';

const client = new OpenAI({ baseURL, apiKey: 'token-of-ada' });
const response = await client.responses.create({ model: 'desk', input: 'Where is order 7?' });
console.log(response.output_text);
// #endregion

// #region branch
const polite = await client.responses.create({
  model: 'desk',
  input: 'Say it politely.',
  previous_response_id: response.id,
});
const short = await client.responses.create({
  model: 'desk',
  input: 'Say it in three words.',
  previous_response_id: response.id,
});
// #endregion
assert.deepEqual([polite.output_text, short.output_text], ['Message 2.', 'Message 2.']);

// #region resume
const started = await client.responses.create({
  model: 'desk',
  input: 'Write the report.',
  background: true,
  stream: true,
});
let id = 'unknown';
let last = -1;
for await (const event of started) {
  if (event.type === 'response.created') id = event.response.id;
  last = event.sequence_number;
  if (event.type === 'response.output_text.delta') break; // the connection is lost
}
const rest = await client.responses.retrieve(id, { stream: true, starting_after: last });
for await (const event of rest) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
}
// #endregion
assert.equal((await client.responses.retrieve(id)).output_text, 'All is well.');

// #region functions
const asked = await client.responses.create({
  model: 'desk',
  input: 'How is the weather?',
  tools: [
    {
      type: 'function',
      name: 'get_weather',
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      strict: false,
    },
  ],
});
const calls = asked.output.filter((item) => item.type === 'function_call');
const answered = await client.responses.create({
  model: 'desk',
  previous_response_id: asked.id,
  input: calls.map(({ call_id, arguments: args }) => ({
    type: 'function_call_output' as const,
    call_id,
    output: `Sunny in ${JSON.parse(args).city}`,
  })),
});
console.log(answered.output_text);
// #endregion
assert.equal(answered.output_text, 'Done: "Sunny in Oslo"');

// #region approve
const waiting = await client.responses.create({ model: 'desk', input: 'Please refund order 7.' });
const requests = waiting.output.filter((item) => item.type === 'function_call');
const done = await client.responses.create({
  model: 'desk',
  previous_response_id: waiting.id,
  input: requests.map(({ call_id }) => ({
    type: 'function_call_output' as const,
    call_id,
    output: JSON.stringify({ approved: true }), // or { approved: false, reason: '…' }
  })),
});
// #endregion
assert.equal(done.output_text, 'Done: "refunded"');

// #region held
import { toResponseInputItems } from 'openai/lib/responses/ResponseInputItems';

const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'Hello.' }];
const first = await client.responses.create({ model: 'desk', input, store: false });
input.push(...toResponseInputItems(first.output), { role: 'user', content: 'And now?' });
const second = await client.responses.create({ model: 'desk', input, store: false });
// #endregion
assert.equal(second.output_text, 'Message 2.');

// #region chat
const completion = await client.chat.completions.create({
  model: 'desk',
  messages: [{ role: 'user', content: 'Where is order 7?' }],
  metadata: { session_id: 'order-7' }, // without it, the request has to have the whole conversation
});
console.log(completion.choices[0]?.message.content);
// #endregion
assert.equal(completion.choices[0]?.message.content, 'Message 1.');

// #region ai-sdk
const agents = createOpenAI({ baseURL, apiKey: 'token-of-ada' });
const { textStream } = streamText({ model: agents('desk'), prompt: 'Write the report.' });
for await (const text of textStream) process.stdout.write(text);
// #endregion

await server.close();
await app.close();
vi.restoreAllMocks();

test('the code of the guide has run', () => {
  expect(second.status).toBe('completed');
});
