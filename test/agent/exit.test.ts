import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryStore, type Store, type Transform, WaymarkError } from 'waymark';
import { fileStore } from 'waymark/file';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { all, modelSays, must, openApp, refused, say, type TestApp, until } from './support/kit.ts';

const number = '4111 1111 1111 1111';

const redact = (text: string): string => text.replaceAll(/\d{4} \d{4} \d{4} \d{4}/g, '***');

/** Redacts the texts of messages, as a transform did that was written before there were other hooks. */
const texts: Transform = {
  state: ({ messages = [], ...rest }) => ({
    ...rest,
    messages: messages.map((message) => ({
      ...message,
      content: message.content.map((part) =>
        'text' in part ? { ...part, text: redact(part.text) } : part,
      ),
    })),
  }),
  chunk: ({ modelChunk: _, ...rest }) => rest,
};

const custom = { state: ({ custom: _, ...rest }) => rest } satisfies Transform;

const schema = { type: 'object', properties: { card: { type: 'string' } } } as const;

describe('a structured output', () => {
  const answer = JSON.stringify({ card: number, kind: 'visa' });
  const define = (app: TestApp, transform: Transform) =>
    app.defineAgent({
      name: 'chat',
      model: scriptedModel({ patterns: [], otherwise: answer }),
      output: { schema },
      transform,
    });

  test('S680 is what the transformed message says, if the agent has no hook for it', async () => {
    await using app = openApp();
    const agent = define(app, texts);
    const { stream, output } = agent.stream({ ...say('a'), requestId: 'r' });
    const chunks = await all(stream);
    expect(chunks.at(-1)?.turnEnd).toEqual({
      finishReason: 'stop',
      snapshotId: expect.any(String),
      usage: expect.anything(),
    });
    const shown = { card: '***', kind: 'visa' };
    expect((await output).output).toEqual(shown);
    // The same request again: from its receipt.
    expect((await agent.run({ ...say('a'), requestId: 'r' })).output).toEqual(shown);
    const background = await agent.run({ ...say('b'), detach: true });
    const watched = JSON.stringify(await all(agent.watch(must(background.snapshotId))));
    expect(watched).not.toContain('4111');
  });

  test('S680 leaves as it is if its message does, and not at all if its message does not say it', async () => {
    await using app = openApp();
    expect((await define(app, custom).run(say('a'))).output).toEqual({
      card: number,
      kind: 'visa',
    });
    const other = app.defineCustomAgent({ name: 'custom', transform: custom }, async (session) => {
      await session.run(async () => {
        session.addMessages(modelSays('{"a":1}'));
        return { output: { a: 1, hidden: 2 } };
      });
    });
    const { stream, output } = other.stream(say('a'));
    expect((await all(stream)).at(-1)?.turnEnd).not.toHaveProperty('output');
    expect(await output).not.toHaveProperty('output');
  });

  test('S680 passes its hook: in turnEnd, in the output and in that of a repeated request', async () => {
    await using app = openApp();
    const output = (value: unknown) => ({ kind: (value as { kind: string }).kind });
    const agent = define(app, { ...texts, output });
    const turn = agent.stream({ ...say('a'), requestId: 'r' });
    expect((await all(turn.stream)).at(-1)?.turnEnd?.output).toEqual({ kind: 'visa' });
    expect((await turn.output).output).toEqual({ kind: 'visa' });
    expect((await agent.run({ ...say('a'), requestId: 'r' })).output).toEqual({ kind: 'visa' });
    expect(await define(openApp(), { output: () => undefined }).run(say('a'))).not.toHaveProperty(
      'output',
    );
  });

  test('S680 S98 a hook for it that throws lets it not out, and the turn is saved', async () => {
    await using app = openApp();
    const agent = define(app, {
      output: () => {
        throw new Error(number);
      },
    });
    const connection = agent.streamBidi({ sessionId: 's' });
    await connection.send(say('a'));
    const end = await until(connection.receive(), ({ turnEnd }) => turnEnd !== undefined);
    expect(end.turnEnd).toMatchObject({ finishReason: 'stop' });
    expect(end.turnEnd).not.toHaveProperty('output');
    const error = await refused(connection.output(), 'INTERNAL');
    expect(JSON.stringify(error)).not.toContain('4111');
    expect((await agent.getSession('s'))?.turnCount).toBe(1);
  });
});

describe('a title', () => {
  const define = (app: TestApp, transform: Transform) =>
    app.defineAgent({
      name: 'chat',
      model: scriptedModel({ patterns: [], otherwise: 'ok' }),
      transform,
    });

  test('S681 leaves through its hook, or not at all beside a state hook', async () => {
    for (const [transform, title] of [
      [{ chunk: texts.chunk }, `Card ${number}`],
      [texts, undefined],
      [{ ...texts, title: redact }, 'Card ***'],
      [{ title: () => undefined }, undefined],
    ] as [Transform, string | undefined][]) {
      await using app = openApp();
      const agent = define(app, transform);
      await agent.runText(`Card ${number}`, { sessionId: 's' });
      expect((await agent.getSession('s'))?.title).toBe(title);
      expect((await agent.listSessions()).items.map((each) => each.title)).toEqual([title]);
      const renamed = await agent.updateSession('s', { title: `Mine, ${number}` });
      expect(renamed.title).toBe(title?.replace('Card', 'Mine,'));
    }
  });
});

const stores: Record<string, (folder: string) => Store> = {
  memory: () => memoryStore(),
  sqlite: () => sqliteStore(':memory:'),
  file: (folder) => fileStore(folder),
};

describe.each(Object.entries(stores))('a search in the %s store', (_, open) => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'waymark-search-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('S682 finds ids, transformed titles and metadata, page by page, and nothing hidden', async () => {
    await using app = openApp({ store: open(folder) });
    const model = scriptedModel({ patterns: [], otherwise: `The number is ${number}.` });
    const agent = app.defineAgent({ name: 'chat', model, transform: { ...texts, title: redact } });
    for (let at = 0; at < 7; at++) {
      await agent.runText(at % 2 === 0 ? `Card ${number}` : 'Other', { sessionId: `s${at}` });
    }
    await agent.updateSession('s1', { metadata: { colour: 'blue' } });
    const find = async (query: string, limit = 50): Promise<string[]> => {
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await agent.listSessions({ query, limit, ...(cursor && { cursor }) });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        found.push(...page.items.map(({ sessionId }) => sessionId));
        cursor = page.next;
        if (cursor === undefined) return found;
      }
    };
    for (const hidden of ['4111', number, 'The number', `Card ${number}`]) {
      expect(await agent.listSessions({ query: hidden })).toEqual({ items: [] });
    }
    const cards = ['s0', 's2', 's4', 's6'];
    for (const limit of [1, 2, 3, 4, 50]) {
      expect((await find('card ***', limit)).sort()).toEqual(cards);
    }
    expect(await find('S3')).toEqual(['s3']);
    expect(await find('blue')).toEqual(['s1']);
    expect((await find('')).length).toBe(7);
    await refused(agent.listSessions({ query: 'x', limit: 0 }), 'INVALID_ARGUMENT');
    await refused(agent.listSessions({ query: 'x'.repeat(1001) }), 'INVALID_ARGUMENT');
    // Without a transform, the text of messages is searched.
    const open2 = app.defineAgent({ name: 'open', model });
    await open2.runText('a', { sessionId: 'o' });
    expect((await open2.listSessions({ query: '4111' })).items).toMatchObject([{ sessionId: 'o' }]);
  });
});

describe('the error of a failed turn', () => {
  const fails = new WaymarkError('RESOURCE_EXHAUSTED', `The card ${number} is used up.`, {
    details: { card: number, left: 0 },
    cause: new Error('of the bank'),
  });
  const run = async (app: TestApp, transform: Transform) => {
    const agent = app.defineAgent({
      name: 'chat',
      model: scriptedModel([{ error: fails }]),
      transform,
    });
    const { error } = await agent.run(say('a'), { sessionId: 's', throwOnError: false });
    const { items } = await agent.listSnapshots('s');
    const snapshot = await agent.getSnapshot({ snapshotId: must(items[0]).snapshotId });
    const shown = JSON.parse(JSON.stringify(error));
    expect([items[0]?.error, snapshot?.error]).toEqual([shown, shown]);
    return { shown, error };
  };

  test('S683 has the texts that the state hook leaves of them, and its own form in process', async () => {
    await using app = openApp();
    const { shown, error } = await run(app, texts);
    expect(shown).toEqual({
      status: 'RESOURCE_EXHAUSTED',
      message: 'The card *** is used up.',
      details: { card: '***', left: 0 },
    });
    expect(error).toMatchObject({ message: fails.message, cause: { message: 'of the bank' } });
    expect(app.errors).toEqual([fails]);
  });

  test('S683 is itself if nothing changes, passes its hook, and is a status if that hides it', async () => {
    await using first = openApp();
    expect((await run(first, custom)).error).toBe(fails);
    await using second = openApp();
    const error: Transform['error'] = ({ status }) => ({ status, message: 'No.' });
    expect((await run(second, { error })).shown).toEqual({
      status: 'RESOURCE_EXHAUSTED',
      message: 'No.',
    });
    for (const transform of [{ state: () => undefined }, { error: () => undefined }]) {
      await using app = openApp();
      expect((await run(app, transform)).shown).toEqual({
        status: 'RESOURCE_EXHAUSTED',
        message: 'The turn failed. The transform of the agent hides the reason.',
      });
    }
  });

  test('S684 does not quote a structured answer that has the wrong form', async () => {
    await using app = openApp();
    for (const [name, text] of [
      ['words', `It is ${number}`],
      ['misfit', JSON.stringify({ card: [number] })],
    ] as const) {
      const model = scriptedModel([text]);
      const agent = app.defineAgent({ name, model, output: { schema } });
      const { error } = await agent.run(say('a'), { throwOnError: false });
      expect(JSON.stringify(error)).not.toContain('4111');
      expect(error).toMatchObject({
        status: 'UNAVAILABLE',
        message: expect.stringContaining('4111'),
      });
    }
  });
});

test('S686 metadata, labels and the bytes of files leave as they are, and hooks of the app see the original', async () => {
  const asked: unknown[] = [];
  await using app = openApp({ onInterrupt: ({ requests }) => void asked.push(requests) });
  const save = app.defineTool({ name: 'save', description: 'Saves' }, async (_, { session }) => {
    await session.saveFile({ name: 'card.txt', data: new TextEncoder().encode(number) });
    return 'ok';
  });
  const ask = app.defineInterrupt({ name: 'ask', description: 'Asks', input: schema });
  const model = scriptedModel([
    { toolCalls: [{ name: 'save' }] },
    { toolCalls: [{ name: 'ask', input: { card: number } }] },
  ]);
  const keeps: Transform = { ...texts, chunk: () => undefined };
  const agent = app.defineAgent({ name: 'chat', model, tools: [save, ask], transform: keeps });
  const { snapshotId = '' } = await agent.run(say('a'), { sessionId: 's' });
  const { stream } = await agent.openFile({ sessionId: 's' }, 'card.txt');
  expect(await new Response(stream).text()).toBe(number);
  await agent.updateSession('s', { metadata: { number } });
  expect((await agent.getSession('s'))?.metadata).toEqual({ number });
  expect((await agent.label(snapshotId, number)).label).toBe(number);
  expect(JSON.stringify(asked)).toContain(number);
});

test('S689 a hook that there is not is refused, with the one that was meant', () => {
  const app = openApp();
  expect(() => app.defineAgent({ name: 'x', transform: { titel: redact } as never })).toThrow(
    /Unknown option "titel" of `transform` of agent "x"\. Did you mean "title"\?/,
  );
});
