/** The configurations of docs/telemetry.md, each in a process of its own, and what they send to a collector on loopback. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { calcPrice } from '@pydantic/genai-prices';
import { expect, test } from 'vitest';
import { priceTable } from '../../src/prices/index.ts';
import { type CollectedSpan, type Collector, openCollector } from './telemetry/collector.ts';

const folder = join(import.meta.dirname, 'telemetry');

/** Runs the app with one of the configurations; returns what it printed. */
async function run(
  configuration: string,
  { url }: Collector,
  more: Record<string, string> = {},
): Promise<{ sessionId: string; snapshotId: string; costs: Record<string, number> }> {
  const env = {
    ...process.env,
    // Where `priceTable()` finds its package.
    NODE_PATH: join(import.meta.dirname, 'node_modules'),
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_METRICS_EXPORTER: 'none',
    LANGFUSE_PUBLIC_KEY: 'pk',
    LANGFUSE_SECRET_KEY: 'sk',
    LANGFUSE_BASE_URL: `${url}/langfuse`,
    BRAINTRUST_API_KEY: 'key',
    BRAINTRUST_API_URL: `${url}/braintrust`,
    ...more,
  };
  const args = ['--import', `./${configuration}.mjs`, 'app.ts'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env });
  return JSON.parse(stdout);
}

const tokens = {
  'gen_ai.usage.input_tokens': 1000,
  'gen_ai.usage.output_tokens': 100,
  'gen_ai.usage.cache_read.input_tokens': 300,
  'gen_ai.usage.cache_write.input_tokens': 200,
  'gen_ai.usage.cache_creation.input_tokens': 200,
  'gen_ai.usage.reasoning.output_tokens': 40,
  'waymark.usage.expected_cached_tokens': 0,
};

const find = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
  const found = spans.find((span) => span.name === name);
  if (found === undefined) throw new Error(`The collector got no span "${name}"`);
  return found;
};

/** The attributes whose values differ from run to run. */
const varying = /snapshot|session|conversation|time_to_first_chunk|^genkit:/;

/** What a span says, without what differs from run to run. */
function fixed({ parent, kind, status, attributes }: CollectedSpan) {
  const entries = Object.entries(attributes).filter(([key]) => !varying.test(key));
  return { parent, kind, status, ...Object.fromEntries(entries) };
}

const chatCall = {
  parent: 'turn 0',
  kind: 3,
  status: 0,
  'gen_ai.operation.name': 'chat',
  'gen_ai.response.finish_reasons': ['stop'],
};

/** The spans of a turn with a tool and a sub-agent, a failed and a stopped turn, all their fields. */
const expected = {
  'invoke_agent chat': {
    parent: undefined,
    kind: 1,
    status: 0,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'chat',
    'gen_ai.agent.description': 'Chats.',
    'gen_ai.agent.version': 'v7',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.response.finish_reasons': ['stop'],
    'user.id': 'ann',
    // Three calls of its own, and one of its sub-agent.
    'gen_ai.usage.input_tokens': 4000,
    'gen_ai.usage.output_tokens': 400,
    'gen_ai.usage.cache_read.input_tokens': 1200,
    'gen_ai.usage.cache_write.input_tokens': 800,
    'gen_ai.usage.cache_creation.input_tokens': 800,
    'gen_ai.usage.reasoning.output_tokens': 160,
    'waymark.usage.expected_cached_tokens': 0,
  },
  'chat gpt-5': {
    ...chatCall,
    ...tokens,
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.max_tokens': 100,
  },
  'execute_tool look': {
    parent: 'turn 0',
    kind: 1,
    status: 0,
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': 'r1',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.description': 'Looks.',
  },
  'invoke_agent helper': {
    parent: 'execute_tool helper',
    kind: 1,
    status: 0,
    ...tokens,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'helper',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.response.finish_reasons': ['stop'],
    'user.id': 'ann',
  },
  'chat failing-model': {
    parent: 'turn 0',
    kind: 3,
    status: 2,
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'gcp.gemini',
    'gen_ai.request.model': 'failing-model',
    'error.type': 'INTERNAL',
  },
  'invoke_agent failing': {
    parent: undefined,
    kind: 1,
    status: 2,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'failing',
    'gen_ai.provider.name': 'gcp.gemini',
    'gen_ai.request.model': 'failing-model',
    'error.type': 'INTERNAL',
  },
  'chat stopped-model': {
    parent: 'turn 0',
    kind: 3,
    status: 2,
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'mistral_ai',
    'gen_ai.request.model': 'stopped-model',
    'error.type': 'CANCELLED',
  },
  'invoke_agent stopped': {
    parent: undefined,
    kind: 1,
    status: 0,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'stopped',
    'gen_ai.provider.name': 'mistral_ai',
    'gen_ai.request.model': 'stopped-model',
    'gen_ai.response.finish_reasons': ['aborted'],
  },
};

const seconds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const firstChunk = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const agentSeconds = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const metrics = [
  ['gen_ai.client.operation.duration', 's', seconds],
  ['gen_ai.client.operation.time_to_first_chunk', 's', firstChunk],
  ['gen_ai.client.token.usage', '{token}', Array.from({ length: 14 }, (_, at) => 4 ** at)],
  ['gen_ai.execute_tool.duration', 's', seconds],
  ['gen_ai.invoke_agent.duration', 's', agentSeconds],
  ['waymark.active_runs', '{run}', undefined],
  ['waymark.failures', '{failure}', undefined],
  ['waymark.turns', '{turn}', undefined],
];

test('S385 S386 S387 a collector gets spans and metrics over OTLP, and every model has a price', async () => {
  await using collector = await openCollector();
  const settings = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_METRICS_EXPORTER: 'otlp' };
  const { sessionId, snapshotId, costs } = await run('otlp', collector, settings);
  const spans = collector.spans();
  for (const [name, fields] of Object.entries(expected)) {
    expect(fixed(find(spans, name)), name).toEqual(fields);
  }
  const root = find(spans, 'invoke_agent chat');
  expect(root.attributes).toMatchObject({
    'gen_ai.conversation.id': sessionId,
    'session.id': sessionId,
    'waymark.snapshot.id': snapshotId,
  });
  expect(find(spans, 'invoke_agent helper').traceId).toBe(root.traceId);
  expect(find(spans, 'invoke_agent failing').traceId).not.toBe(root.traceId);
  const got = collector.metrics().map(({ name, unit, bounds }) => [name, unit, bounds]);
  expect(got.toSorted()).toEqual(metrics);

  // What the app has charged is what the attributes of the spans cost by the price list.
  const price = priceTable(calcPrice);
  const answered = spans.filter(({ name, status }) => name.startsWith('chat ') && status === 0);
  expect(answered.length).toBeGreaterThan(10);
  for (const { name, attributes } of answered) {
    const id = String(attributes['gen_ai.request.model']);
    const usage = {
      inputTokens: Number(attributes['gen_ai.usage.input_tokens']),
      outputTokens: Number(attributes['gen_ai.usage.output_tokens']),
      cachedInputTokens: Number(attributes['gen_ai.usage.cache_read.input_tokens']),
      cacheWriteTokens: Number(attributes['gen_ai.usage.cache_creation.input_tokens']),
    };
    const provider = String(attributes['gen_ai.provider.name']);
    expect(price({ name: id, id, provider }, usage)?.USD, name).toBeGreaterThan(0);
    const [, charged] = Object.entries(costs).find(([key]) => key.endsWith(`/${id}`)) ?? [];
    expect(price({ name: id, id, provider }, usage)?.USD, name).toBe(charged);
  }
  // $3 and $15 per million tokens; reading the cache costs a tenth, writing it a quarter more.
  expect(costs['anthropic.messages/claude-sonnet-4-5']).toBe(
    500 * 3 + 300 * 0.3 + 200 * 3.75 + 1500,
  );
});

test('S385 the Langfuse processor sends all spans', async () => {
  await using collector = await openCollector();
  await run('langfuse', collector, { CONTENT: '1' });
  expect(collector.received).toMatchObject([
    { path: '/langfuse/api/public/otel/v1/traces', headers: { authorization: 'Basic cGs6c2s=' } },
  ]);
  const spans = collector.spans();
  const names = new Set(spans.map(({ name }) => name));
  expect([...Object.keys(expected), 'turn 0'].filter((name) => !names.has(name))).toEqual([]);
  expect(find(spans, 'chat gpt-5').attributes).toMatchObject({
    ...tokens,
    'gen_ai.input.messages': expect.stringContaining('the question'),
  });
});

test('S385 the Braintrust processor sends all spans of an agent to its project', async () => {
  await using collector = await openCollector();
  await run('braintrust', collector);
  const [sent] = collector.received;
  expect(sent).toMatchObject({
    path: '/braintrust/otel/v1/traces',
    headers: { authorization: 'Bearer key', 'x-bt-parent': 'project_name:support' },
  });
  for (const [name, fields] of Object.entries(expected)) {
    expect(fixed(find(collector.spans(), name)), name).toMatchObject(fields);
  }
});

test('S385 Phoenix gets the attributes of OpenInference, over OTLP with Protocol Buffers', async () => {
  await using collector = await openCollector();
  await run('phoenix', collector, { CONTENT: '1' });
  expect(collector.received).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } },
  ]);
  const spans = collector.spans();
  expect(find(spans, 'invoke_agent helper').parent).toBe('execute_tool helper');
  expect(find(spans, 'chat gpt-5').attributes).toMatchObject({
    'openinference.span.kind': 'LLM',
    'llm.provider': 'openai',
    'llm.model_name': 'gpt-5',
    'llm.token_count.prompt': 1000,
    'llm.token_count.completion': 100,
    'llm.token_count.prompt_details.cache_read': 300,
    'llm.token_count.prompt_details.cache_write': 200,
    'llm.output_messages.0.message.role': 'assistant',
  });
  expect(find(spans, 'execute_tool look').attributes).toMatchObject({
    'openinference.span.kind': 'TOOL',
    'tool.name': 'look',
  });
  expect(find(spans, 'invoke_agent chat').attributes).toMatchObject({
    'openinference.span.kind': 'AGENT',
    'session.id': expect.any(String),
    'user.id': 'ann',
  });
});
