import { afterEach, expect, test } from 'vitest';
import { type App, waymark } from 'waymark';
import { a2aAgentTool } from 'waymark/a2a';
import { scriptedModel } from 'waymark/testing';

const apps: App[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close({ grace: 0 })));
});

const url = 'http://remote.example/agent';
const json = (body: unknown): Response => Response.json(body);
const rpc = (result: unknown): Response => json({ jsonrpc: '2.0', id: 1, result });
const event = (result: unknown): string =>
  `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`;
const piece = (text: string): string =>
  event({ artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text }] } } });
const status = event({ statusUpdate: { taskId: 't', status: { state: 'TASK_STATE_WORKING' } } });

interface Remote {
  /** The chunks of its stream. */
  readonly stream?: () => Iterable<string>;
  /** Its task after the stream. */
  readonly end?: object;
  readonly card?: object;
  readonly maxMessageBytes?: number;
}

/** A lead that asks a remote agent, which behaves as it is told; gives what the tool streamed and returned. */
async function ask(remote: Remote) {
  const { stream = () => [], end = {}, card = {}, maxMessageBytes = 10_000 } = remote;
  const methods: string[] = [];
  let hasStreamed = false;
  const send: typeof fetch = async (_, init) => {
    if (init?.method !== 'POST') {
      const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      return json({ capabilities: { streaming: true }, supportedInterfaces, ...card });
    }
    const { method } = JSON.parse(String(init.body));
    methods.push(method);
    const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } };
    if (method === 'SendMessage') return rpc({ task });
    if (method !== 'SubscribeToTask') {
      const completed = { ...task, status: { state: 'TASK_STATE_COMPLETED' }, ...end };
      return rpc(hasStreamed ? completed : task);
    }
    hasStreamed = true;
    const chunks = stream()[Symbol.iterator]();
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const { value, done } = chunks.next();
        if (done) controller.close();
        else controller.enqueue(new TextEncoder().encode(value));
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const expert = a2aAgentTool(url, {
    name: 'expert',
    description: 'Knows.',
    fetch: send,
    maxMessageBytes,
  });
  const model = scriptedModel({
    patterns: [[/^Ask/, { toolCalls: [{ name: 'expert', input: { message: 'Do it' } }] }]],
    otherwise: 'Nothing.',
  });
  const app = waymark({ model, onError: () => {} });
  apps.push(app);
  const turn = app.defineAgent({ name: 'lead', tools: [expert] }).stream('Ask');
  const streamed: string[] = [];
  for await (const { modelChunk } of turn.stream) {
    for (const part of modelChunk?.content ?? []) {
      if ('toolResponse' in part && part.metadata?.partial) {
        streamed.push(String(part.toolResponse.output));
      }
    }
  }
  await turn.output;
  const part = model.requests.at(-1)?.messages.at(-1)?.content[0];
  const output = part && 'toolResponse' in part ? part.toolResponse?.output : undefined;
  return { streamed, output, methods };
}

const answer = (text: string): object => ({ artifacts: [{ parts: [{ text }] }] });

test('S664 pieces of text that come at the same time are streamed as one', async () => {
  const pieces = Array.from({ length: 500 }, (_, at) => `${at} `);
  const { streamed, output } = await ask({
    stream: function* () {
      for (let at = 0; at < pieces.length; at += 50) {
        yield pieces
          .slice(at, at + 50)
          .map(piece)
          .join('');
      }
    },
    end: answer('done'),
  });
  expect(streamed.join('')).toBe(pieces.join(''));
  expect(streamed.length).toBeLessThan(20);
  expect(output).toBe('done');
});

test('S664 a remote agent that streams too much text ends the call, and its task is cancelled', async () => {
  const { output, methods } = await ask({
    stream: function* () {
      for (;;) yield piece('x'.repeat(1_000));
    },
  });
  expect(output).toBe('The remote agent "expert" sent an answer of more than 10000 characters.');
  expect(methods).toContain('CancelTask');
});

test('S664 a remote agent that sends status updates without end ends the call', async () => {
  const { output } = await ask({
    stream: function* () {
      for (;;) yield status.repeat(50);
    },
  });
  expect(output).toBe('The remote agent "expert" sent more than 100000 bytes of events.');
});

test('S664 an event without an end breaks the stream, and the task is asked for', async () => {
  const { output, methods } = await ask({
    stream: function* () {
      for (;;) yield `data: ${'x'.repeat(1_000)}`;
    },
    end: answer('done'),
  });
  expect(output).toBe('done');
  expect(methods.filter((method) => method === 'SubscribeToTask')).toHaveLength(1);
});

test('S664 a card that is too large is refused', async () => {
  const card = { description: 'x'.repeat(1_100_000) };
  const { output } = await ask({ card, maxMessageBytes: 4_000_000 });
  expect(output).toBe('The remote agent "expert" is not available.');
});

test('S661 a question with a schema that is nested too deeply is refused', async () => {
  const schema = JSON.parse(`${'{"not":'.repeat(200)}{}${'}'.repeat(200)}`);
  const data = { questions: [{ key: 'k', message: 'Which?', schema }] };
  const { output } = await ask({
    end: { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ data }] } } },
  });
  expect(output).toMatch(/nested more than 128 levels deep/);
});
