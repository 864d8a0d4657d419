import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAnthropic } from '@ai-sdk/anthropic';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type LanguageModel, memoryStore, type Usage, waymark } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { sse } from '../providers/wire-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: the body of a provider's request
type Any = any;

/** A block of a prompt on the wire: a tool, or a content block. */
interface Block {
  readonly text: string;
  readonly isMarked: boolean;
}

const tokensIn = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + Math.ceil(text.length / 4), 0);

/** Anthropic's rules: what ends in a mark is cached, and a mark finds what was cached up to 20 blocks before it. */
function markedCache(): (blocks: readonly Block[]) => { read: number; written: number } {
  const cached = new Set<string>();
  const prefix = (blocks: readonly Block[], end: number): string =>
    blocks
      .slice(0, end)
      .map(({ text }) => text)
      .join('\n');
  return (blocks) => {
    const marks = blocks.flatMap(({ isMarked }, at) => (isMarked ? [at + 1] : []));
    expect(marks.length).toBeLessThanOrEqual(4);
    let hit = 0;
    for (const mark of marks) {
      for (let end = mark; end > Math.max(hit, mark - 20); end--) {
        if (cached.has(prefix(blocks, end))) hit = end;
      }
    }
    const last = Math.max(...marks, hit);
    for (const mark of marks) {
      if (tokensIn(blocks.slice(0, mark)) >= 1_024) cached.add(prefix(blocks, mark));
    }
    const isCached = cached.has(prefix(blocks, last));
    return {
      read: tokensIn(blocks.slice(0, hit)),
      written: isCached ? tokensIn(blocks.slice(hit, last)) : 0,
    };
  };
}

function blocksOf({ tools = [], system = [], messages }: Any): Block[] {
  const toBlock = (role: string, block: Any): Block => {
    const { cache_control: mark, ...rest } = block;
    return { text: JSON.stringify([role, rest]), isMarked: mark !== undefined };
  };
  return [
    ...tools.map((tool: Any) => toBlock('tool', tool)),
    ...system.map((block: Any) => toBlock('system', block)),
    ...messages.flatMap(({ role, content }: Any) =>
      content.map((each: Any) => toBlock(role, each)),
    ),
  ];
}

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A loopback server that answers as Anthropic's API does, and counts what its cache has. */
async function startProvider(): Promise<{ readonly url: string; readonly requests: Any[] }> {
  const requests: Any[] = [];
  const cache = markedCache();
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString());
      requests.push(body);
      const blocks = blocksOf(body);
      const { read, written } = cache(blocks);
      const usage = {
        input_tokens: tokensIn(blocks) - read - written,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        output_tokens: 1,
      };
      const said = body.messages.at(-1).content;
      const asks = said.some(({ text }: Any) => text?.startsWith('Look'));
      const block = asks
        ? { type: 'tool_use', id: `toolu_${requests.length}`, name: 'look', input: {} }
        : { type: 'text', text: '' };
      const delta = asks
        ? { type: 'input_json_delta', partial_json: '{}' }
        : { type: 'text_delta', text: 'An answer of some length. '.repeat(20) };
      const message = {
        id: `msg_${requests.length}`,
        type: 'message',
        role: 'assistant',
        model: body.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(
        sse([
          { type: 'message_start', message },
          { type: 'content_block_start', index: 0, content_block: block },
          { type: 'content_block_delta', index: 0, delta },
          { type: 'content_block_stop', index: 0 },
          {
            type: 'message_delta',
            delta: { stop_reason: asks ? 'tool_use' : 'end_turn', stop_sequence: null },
            usage: { output_tokens: 130 },
          },
          { type: 'message_stop' },
        ]),
      );
    })();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests };
}

/** A provider that needs no marks: the longest beginning that it has seen, in steps of 128 tokens from 1,024 on. */
function automaticModel(): LanguageModel {
  const seen: string[] = [];
  return {
    specificationVersion: 'v4',
    provider: 'openai.responses',
    modelId: 'scripted',
    async doStream({ prompt, tools }: Any) {
      const text = JSON.stringify([tools, prompt]);
      const common = Math.max(
        0,
        ...seen.map((other) => {
          let at = 0;
          while (at < text.length && text[at] === other[at]) at++;
          return at;
        }),
      );
      seen.push(text);
      const tokens = Math.floor(common / 4 / 128) * 128;
      const cacheRead = tokens < 1_024 ? 0 : tokens;
      const said = prompt.at(-1).content;
      const asks = prompt.at(-1).role === 'user' && said[0].text.startsWith('Look');
      const total = Math.ceil(text.length / 4);
      const usage = {
        inputTokens: { total, noCache: total - cacheRead, cacheRead, cacheWrite: undefined },
        outputTokens: { total: 130, text: 130, reasoning: undefined },
      };
      const parts: Any[] = asks
        ? [{ type: 'tool-call', toolCallId: `c${seen.length}`, toolName: 'look', input: '{}' }]
        : [
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: 'An answer of some length. '.repeat(20) },
            { type: 'text-end', id: '1' },
          ];
      const finishReason = { unified: asks ? 'tool-calls' : 'stop', raw: undefined };
      const stream = new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.enqueue({ type: 'finish', finishReason, usage });
          controller.close();
        },
      });
      return { stream };
    },
  } as Any;
}

/** Ten turns of one session; the fourth and the eighth call a tool. */
async function tenTurns(
  model: LanguageModel,
  config: { readonly cache?: boolean | '1h' } = {},
  system = 'You are a desk. '.repeat(400),
): Promise<readonly Usage[]> {
  const app = waymark({ store: sqliteStore(':memory:') });
  const look = app.defineTool({ name: 'look', description: 'Looks', input: z.object({}) }, () => ({
    found: 'A result of some length. '.repeat(20),
  }));
  const desk = app.defineAgent({ name: 'desk', model, system, config, tools: [look] });
  const usages: Usage[] = [];
  for (let turn = 1; turn <= 10; turn++) {
    const question = `${turn % 4 === 0 ? 'Look' : 'Say'} this: ${'question '.repeat(30)}`;
    const { usage, snapshotId } = await desk.run(question, { sessionId: 's' });
    // As it is stored.
    const stored = await desk.getSnapshot({ snapshotId: snapshotId ?? '' });
    expect(stored?.usage).toEqual(usage);
    usages.push(usage ?? {});
  }
  await app.close();
  return usages;
}

const anthropic = (url: string): LanguageModel =>
  createAnthropic({ baseURL: url, apiKey: 'test' })('claude-sonnet-4-5') as LanguageModel;

describe('the prompts of a conversation', () => {
  test('are cached from the second turn on, 95 to 102 % of what is expected (S747)', async () => {
    const marked = await tenTurns(anthropic((await startProvider()).url));
    const unmarked = await tenTurns(anthropic((await startProvider()).url), { cache: false });
    const automatic = await tenTurns(automaticModel());

    expect(unmarked.every(({ cachedInputTokens }) => cachedInputTokens === 0)).toBe(true);
    for (const usages of [marked, automatic]) {
      for (const [at, usage] of usages.entries()) {
        const { expectedCachedTokens = -1, cachedInputTokens = 0 } = usage;
        if (at === 0) expect([expectedCachedTokens, cachedInputTokens]).toEqual([0, 0]);
        // The estimate goes by the length of texts.
        else {
          expect(cachedInputTokens / expectedCachedTokens).toBeGreaterThan(0.95);
          expect(cachedInputTokens / expectedCachedTokens).toBeLessThan(1.02);
        }
      }
    }
  });

  test('have the tools of a source by name, whatever order it lists them in (S747)', async () => {
    const model = scriptedModel({ patterns: [], otherwise: 'Yes.' });
    const app = waymark({ model, store: memoryStore() });
    const tools = ['b', 'c', 'a'].map((name) =>
      app.defineTool({ name, description: name, input: z.object({}) }, () => name),
    );
    const source = {
      name: 'shuffled',
      list: async () => [...tools.reverse()],
      close: async () => {},
    };
    const desk = app.defineAgent({ name: 'desk', tools: [source] });
    for (const text of ['one', 'two']) await desk.run(text, { sessionId: 's' });
    expect(model.requests.map((request) => request.tools.map(({ name }) => name))).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ]);
    await app.close();
  });

  test('that change at their beginning are expected, but not reported (S747)', async () => {
    let clock = 0;
    const app = waymark({ store: memoryStore() });
    const desk = app.defineAgent({
      name: 'desk',
      model: anthropic((await startProvider()).url),
      system: () => `It is ${clock++} o'clock. ${'You are a desk. '.repeat(400)}`,
    });
    for (const text of ['one', 'two', 'three']) await desk.run(text, { sessionId: 's' });
    const { usage } = await desk.run('four', { sessionId: 's' });
    expect(usage?.cachedInputTokens).toBe(0);
    expect(usage?.expectedCachedTokens).toBeGreaterThan(1_024);
    await app.close();
  });

  test('are marked at most three times, and not at all where the app has marked them', async () => {
    const { url, requests } = await startProvider();
    await tenTurns(anthropic(url), { cache: '1h' });
    const marksIn = (body: Any): object[] =>
      [...(body.system ?? []), ...body.messages.flatMap(({ content }: Any) => content)].flatMap(
        (block: Any) => block.cache_control ?? [],
      );
    expect(marksIn(requests[0])).toEqual([{ type: 'ephemeral', ttl: '1h' }]);
    expect(requests.slice(1).map((body) => marksIn(body).length)).toEqual(
      requests.slice(1).map(() => 3),
    );
    const own = await startProvider();
    const app = waymark({ store: memoryStore() });
    const cacheControl = { type: 'ephemeral' };
    const metadata = { providerMetadata: { anthropic: { cacheControl } } };
    await app.generate({
      model: anthropic(own.url),
      system: [{ text: 'You are a desk.', metadata }],
      messages: [
        { role: 'user', content: [{ text: 'a' }] },
        { role: 'model', content: [{ text: 'b' }] },
        { role: 'user', content: [{ text: 'c' }] },
      ],
    });
    expect(marksIn(own.requests[0])).toEqual([cacheControl]);
    await app.close();
  });
});
