import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { type Memory, type MemoryOptions, systemClock, waymark } from '../../../src/index.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import { replay } from '../../../src/replay/replay.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { scriptedModel } from '../../../src/testing/scripted-model.ts';
import { eventually } from '../../support/eventually.ts';
import { memoryIn, type Opened } from './memory-behaviour.ts';

const schema = z.object({ text: z.string() });
const owner = { owner: 'ada' };
type Options = Partial<MemoryOptions<typeof schema>>;

/** A vector by what a text is about, whatever its words are. */
function vectorOf(text: string, length = 4): number[] {
  const vector: number[] = Array.from({ length }, () => 0);
  const topics = [/tea|drink|beverage/i, /dog|pet|animal/i, /lisbon|city/i];
  for (const [at, topic] of topics.entries()) if (topic.test(text)) vector[at] = 1;
  if (!vector.includes(1)) vector[3] = 1;
  return vector;
}

/** A clock on which nothing takes longer than 50 ms. */
const quickClock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 50), signal),
};

function appWith(store: Store, options: Options, onError: (error: unknown) => void = () => {}) {
  const model = scriptedModel([]);
  const own = { ...store, close: async () => {} };
  const app = waymark({ model, store: own, onError, clock: quickClock });
  const facts = app.defineMemory({ name: 'facts', schema, ...options });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  const known = async (where = {}): Promise<string[]> =>
    (await facts.list({ ...owner, ...where })).items.map(({ value }) => value.text).sort();
  return { app, model, facts, assistant, known };
}

const textsOf = async (memory: Memory<{ text: string }>, query: string): Promise<string[]> =>
  (await memory.search(query, owner)).map(({ value }) => value.text);

/** What a memory does in the background, and a replay with it, on one store. */
export function memoryWork(name: string, open: () => Promise<Opened>): void {
  const using = async (work: (store: Store) => Promise<void>): Promise<void> => {
    const { store, close } = await open();
    try {
      await work(store);
    } finally {
      await close();
    }
  };

  describe(`the background work of memory on the ${name} store`, () => {
    test('S940: with embeddings, a search finds the same meaning, and each content is embedded once', () =>
      using(async (store) => {
        const embed = vi.fn(async (texts: readonly string[]) =>
          texts.map((each) => vectorOf(each)),
        );
        const { app, facts, assistant, model } = appWith(store, { embed });
        const tea = await facts.add({ text: 'Prefers tea' }, owner);
        await facts.add({ text: 'Prefers tea' }, { owner: 'bob' });
        await facts.add({ text: 'Has a dog' }, owner);
        await eventually(async () =>
          expect(await textsOf(facts, 'which beverage?')).toEqual(['Prefers tea']),
        );
        model.add('Tea.');
        await assistant.run('My favourite beverage?', owner);
        expect(memoryIn(model.requests[0]?.messages)).toContain('Prefers tea');
        const call = { toolCalls: [{ name: 'remember', input: { text: 'Lives in Lisbon' } }] };
        model.add(call, 'ok');
        await assistant.run('remember', owner);
        await eventually(async () =>
          expect(await textsOf(facts, 'city')).toEqual(['Lives in Lisbon']),
        );
        await facts.update(tea.id, { text: 'Prefers a cold drink' }, owner);
        await eventually(async () =>
          expect(await textsOf(facts, 'beverage')).toEqual(['Prefers a cold drink']),
        );
        await app.close();
        const again = appWith(store, { embed });
        expect(await textsOf(again.facts, 'beverage')).toEqual(['Prefers a cold drink']);
        const texts = embed.mock.calls.flatMap(([each]) => each);
        expect(texts.filter((text) => text === 'Has a dog')).toHaveLength(1);
        expect(await textsOf(again.facts, 'city')).toEqual(['Lives in Lisbon']);
        await again.app.close();
      }));

    test('S941: an embedder that fails, hangs or changes its length loses no entry, no search and no turn', () =>
      using(async (store) => {
        const errors: unknown[] = [];
        let mode: 'fail' | 'hang' | 'long' | 'wrong' = 'fail';
        const embed = async (texts: readonly string[]): Promise<number[][]> => {
          if (mode === 'fail') throw new Error('no model');
          if (mode === 'hang') return await new Promise<never>(() => {});
          if (mode === 'wrong') return [[Number.NaN]];
          return texts.map((text) => vectorOf(text, 6));
        };
        const short = async (texts: readonly string[]) => texts.map((text) => vectorOf(text));
        Object.defineProperty(short, 'name', { value: 'embed' });
        const first = appWith(store, { embed: short });
        await first.facts.add({ text: 'Prefers tea' }, owner);
        await eventually(async () =>
          expect(await textsOf(first.facts, 'beverage')).toEqual(['Prefers tea']),
        );
        await first.app.close();
        const { app, facts, assistant, model } = appWith(store, { embed }, (error) =>
          errors.push(error),
        );
        expect(await textsOf(facts, 'tea')).toEqual(['Prefers tea']);
        model.add('ok');
        expect((await assistant.run('hello', owner)).text).toBe('ok');
        mode = 'wrong';
        expect(await textsOf(facts, 'prefers tea')).toEqual(['Prefers tea']);
        expect(errors.map(String).join()).toContain('no model');
        expect(errors.map(String).join()).toContain('not finite');
        mode = 'hang';
        expect(await textsOf(facts, 'tea, really')).toEqual(['Prefers tea']);
        expect(errors.map(String).join()).toContain('Not done within 2000 ms');
        mode = 'long';
        await eventually(async () =>
          expect(await textsOf(facts, 'some beverage')).toEqual(['Prefers tea']),
        );
        await app.close();
      }));

    test('S940: what deletes an entry deletes its vector', () =>
      using(async (store) => {
        const embed = async (texts: readonly string[]) => texts.map((each) => vectorOf(each));
        const { app, facts, assistant, model } = appWith(store, { embed });
        const call = { toolCalls: [{ name: 'remember', input: { text: 'Prefers tea' } }] };
        model.add(call, 'ok');
        const { sessionId } = await assistant.run('remember', owner);
        const { id } = await facts.add({ text: 'Has a dog' }, owner);
        const key = JSON.stringify(['vectors', ['facts', 'owner', 'ada']]);
        const vectors = async () =>
          (await store.memory?.read({ key, owner: 'ada' }, 0))?.versions.length;
        await eventually(async () => expect(await vectors()).toBe(2));
        await facts.forget(id, owner);
        expect(await vectors()).toBe(1);
        await assistant.deleteSession(sessionId, owner);
        expect(await vectors()).toBe(0);
        await app.close();
      }));

    test('S942: extraction runs after the turn, and its entries belong to the snapshot that it read', () =>
      using(async (store) => {
        const knownThen: string[][] = [];
        const { app, known, facts, assistant, model } = appWith(store, {
          extract: ({ messages, known: before }) => {
            knownThen.push(before.map(({ value }) => value.text));
            const [input] = messages;
            return [{ text: `Said ${textOf(input)}` }, { text: 1 } as never];
          },
        });
        model.add('ok', 'ok', 'ok');
        const one = await assistant.run('one', owner);
        await eventually(async () => expect(await known()).toEqual(['Said one']));
        const { sessionId } = one;
        const two = await assistant.run('two', { ...owner, sessionId });
        await eventually(async () => expect(await known()).toEqual(['Said one', 'Said two']));
        expect(knownThen).toEqual([[], ['Said one']]);
        const [newest] = (await facts.list(owner)).items;
        expect(newest?.source).toMatchObject({ sessionId, snapshotId: two.snapshotId });
        await assistant.restore(one.snapshotId ?? '', owner);
        expect(await known()).toEqual(['Said one']);
        await assistant.run('three', { ...owner, sessionId });
        await eventually(async () => expect(await known()).toEqual(['Said one', 'Said three']));
        await assistant.restore(two.snapshotId ?? '', owner);
        expect(await known()).toEqual(['Said one', 'Said two']);
        await assistant.deleteSession(sessionId, owner);
        expect(await known()).toEqual([]);
        await app.close();
      }));

    test('S943: a replay gives a turn the memory of its time, and skips it if that was deleted', () =>
      using(async (store) => {
        const { app, facts, assistant, model } = appWith(store, {});
        const { id } = await facts.add({ text: 'Has a dog' }, owner);
        model.add('ok', 'ok');
        const one = await assistant.run('one', owner);
        await facts.update(id, { text: 'Has a cat' }, owner);
        const cow = await facts.add({ text: 'Has a cow' }, owner);
        await assistant.run('two', { ...owner, sessionId: one.sessionId });
        await facts.update(cow.id, { text: 'Has a hen' }, owner);
        const again = scriptedModel({ patterns: [], otherwise: 'ok' });
        const run = () => replay(app, { sessions: owner, with: { model: again } });
        const { turns, skipped } = await run();
        expect(skipped).toEqual([]);
        expect(turns.map(({ divergences }) => divergences)).toEqual([[], []]);
        const told = again.requests.map(({ messages }) => memoryIn(messages) ?? '');
        expect(told[0]).toBe(memoryIn(model.requests[0]?.messages));
        expect(told[1]).toBe(memoryIn(model.requests[1]?.messages));
        await facts.forget(cow.id, owner);
        const later = await run();
        expect(later.turns).toHaveLength(1);
        expect(later.skipped).toMatchObject([
          { turnIndex: 1, reason: expect.stringContaining('deleted') },
        ]);
        await app.close();
      }));
  });
}
