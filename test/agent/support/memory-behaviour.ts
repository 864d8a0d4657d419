import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { waymark } from '../../../src/index.ts';
import type { Message } from '../../../src/protocol/message.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { type ScriptedReply, scriptedModel } from '../../../src/testing/scripted-model.ts';
import { eventually } from '../../support/eventually.ts';

/** A store for one test. */
export interface Opened {
  readonly store: Store;
  readonly close: () => Promise<void>;
}

const schema = z.object({ text: z.string(), topic: z.string().optional() });

const owner = { owner: 'ada' };

/** An answer that remembers a text. */
function remember(text: string): ScriptedReply {
  return { toolCalls: [{ name: 'remember', input: { text } }] };
}

/** An app with a memory and an agent that uses it. */
function memoryApp(store: Store, onError?: (error: unknown) => void) {
  const model = scriptedModel([]);
  const app = waymark({ model, store, ...(onError && { onError }) });
  const facts = app.defineMemory({ name: 'facts', schema });
  const assistant = app.defineAgent({ name: 'assistant', memory: facts });
  /** One turn with these answers of the model. */
  const turn = async (
    input: string,
    options: { readonly sessionId?: string; readonly snapshotId?: string; readonly owner?: string },
    ...replies: readonly ScriptedReply[]
  ) => {
    model.add(...replies);
    const result = await assistant.run(input, { ...owner, ...options });
    return { ...result, snapshotId: result.snapshotId ?? expect.fail('no snapshot') };
  };
  /** The texts that a search sees. */
  const known = async (where: object = owner): Promise<readonly string[]> =>
    (await facts.list({ ...owner, ...where })).items.map(({ value }) => value.text).sort();
  return { app, model, facts, assistant, turn, known };
}

/** The message from memory in a request; `undefined` if it has none. */
export function memoryIn(messages: readonly Message[] | undefined): string | undefined {
  const found = messages?.find((message) => textOf(message).startsWith('From memory'));
  return found && textOf(found);
}

/** What agents remember, on one store. */
export function memoryBehaviour(name: string, open: () => Promise<Opened>): void {
  const using = async (work: (store: Store) => Promise<void>): Promise<void> => {
    const { store, close } = await open();
    try {
      await work(store);
    } finally {
      await close();
    }
  };

  describe(`memory on the ${name} store`, () => {
    test('S814 S821: what a turn remembers is known in other sessions, with its source', () =>
      using(async (store) => {
        const { model, facts, assistant, turn } = memoryApp(store);
        const first = await turn('I prefer tea.', {}, remember('Prefers tea'), 'Noted.');
        const [found] = await facts.search('drinks tea', owner);
        expect(found).toMatchObject({
          value: { text: 'Prefers tea' },
          score: expect.any(Number),
          source: { sessionId: first.sessionId, snapshotId: first.snapshotId, message: 1 },
        });
        await turn('What do I drink?', {}, 'Tea.');
        const sent = model.requests.at(-1)?.messages ?? [];
        expect(sent.map(({ role }) => role)).toEqual(['user', 'user']);
        expect(memoryIn(sent)).toContain('{"text":"Prefers tea"}');
        expect(textOf(sent.at(-1))).toBe('What do I drink?');
        const { items } = await assistant.listSessions(owner);
        for (const { sessionId } of items) {
          const session = await assistant.getSession(sessionId, owner);
          expect(memoryIn(session?.state?.messages)).toBeUndefined();
        }
        expect(await facts.search('tea', { owner: 'bob' })).toEqual([]);
        expect(await facts.search('coffee', owner)).toEqual([]);
      }));

    test('S815: entries of a turn that a restore has left are hidden, and come back with the head', () =>
      using(async (store) => {
        const { assistant, turn, known, model } = memoryApp(store);
        const one = await turn('one', {}, remember('One'), 'ok');
        const { sessionId } = one;
        const two = await turn('two', { sessionId }, remember('Two'), 'ok');
        expect(await known()).toEqual(['One', 'Two']);
        await assistant.restore(one.snapshotId, owner);
        expect(await known()).toEqual(['One']);
        await assistant.restore(two.snapshotId, owner);
        expect(await known()).toEqual(['One', 'Two']);
        await assistant.restore(one.snapshotId, owner);
        const three = await turn('three', { sessionId }, remember('Three'), 'ok');
        expect(memoryIn(model.requests.at(-2)?.messages)).not.toContain('Two');
        expect(await known()).toEqual(['One', 'Three']);
        await assistant.restore(two.snapshotId, owner);
        expect(await known()).toEqual(['One', 'Two']);
        await assistant.restore(three.snapshotId, owner);
        expect(await known()).toEqual(['One', 'Three']);
      }));

    test('S816: a fork knows what was known at its snapshot, and nothing that its original learned later', () =>
      using(async (store) => {
        const { assistant, turn, model } = memoryApp(store);
        const one = await turn('one', {}, remember('One'), 'ok');
        await turn('two', { sessionId: one.sessionId }, remember('Two'), 'ok');
        const fork = await assistant.fork(one.snapshotId, owner);
        await turn('elsewhere', {}, remember('Elsewhere'), 'ok');
        await turn('fork', { sessionId: fork.sessionId }, 'ok');
        const inFork = memoryIn(model.requests.at(-1)?.messages);
        expect(inFork).toContain('One');
        expect(inFork).toContain('Elsewhere');
        expect(inFork).not.toContain('Two');
        await turn('more', { sessionId: fork.sessionId }, remember('Forked'), 'ok');
        await turn('back', { sessionId: one.sessionId }, 'ok');
        const inOriginal = memoryIn(model.requests.at(-1)?.messages);
        expect(inOriginal).toContain('Two');
        expect(inOriginal).not.toContain('Forked');
      }));

    test('S816: a fork from before the first entry is not told what its original learned', () =>
      using(async (store) => {
        const { assistant, turn, model } = memoryApp(store);
        const none = await turn('none', {}, 'ok');
        const fork = await assistant.fork(none.snapshotId, owner);
        await turn('one', { sessionId: none.sessionId }, remember('One'), 'ok');
        await turn('fork', { sessionId: fork.sessionId }, 'ok');
        expect(memoryIn(model.requests.at(-1)?.messages)).toBeUndefined();
      }));

    test('S822: a search as of a snapshot gives what was known there', () =>
      using(async (store) => {
        const { turn, known, facts, assistant } = memoryApp(store);
        const one = await turn('one', {}, remember('One'), 'ok');
        const two = await turn('two', { sessionId: one.sessionId }, remember('Two'), 'ok');
        const other = await turn('other', {}, remember('Other'), 'ok');
        expect(await known({ asOf: one.snapshotId })).toEqual(['One']);
        expect(await known({ asOf: two })).toEqual(['One', 'Two']);
        expect(await known({ asOf: other.snapshotId })).toEqual(['One', 'Other', 'Two']);
        await assistant.restore(one.snapshotId, owner);
        expect(await known({ asOf: two.snapshotId })).toEqual(['One', 'Two']);
        expect(await known({ asOf: other.snapshotId })).toEqual(['One', 'Other']);
        expect(await facts.search('two', { ...owner, asOf: one.snapshotId })).toEqual([]);
        const asked = facts.search('two', { owner: 'bob', asOf: one.snapshotId });
        await expect(asked).rejects.toMatchObject({ status: 'NOT_FOUND' });
      }));

    test('S818: deleting a session deletes its versions and the later ones of their entries', () =>
      using(async (store) => {
        const { assistant, turn, facts, known } = memoryApp(store);
        const one = await turn('one', {}, remember('One'), 'ok');
        const [entry] = (await facts.list(owner)).items;
        const { id = '' } = entry ?? {};
        const mine = await facts.add({ text: 'Mine' }, owner);
        await facts.update(mine.id, { text: 'Mine again' }, owner);
        const call = { name: 'forget', input: { id: mine.id } };
        const gone = await turn('forget it', {}, { toolCalls: [call] }, 'ok');
        await facts.update(id, { text: 'One again' }, owner);
        expect(await known()).toEqual(['One again']);
        expect((await facts.history(id, owner)).map(({ value }) => value?.text)).toEqual([
          'One',
          'One again',
        ]);
        await assistant.deleteSession(gone.sessionId, owner);
        expect(await known()).toEqual(['Mine again', 'One again']);
        await assistant.deleteSession(one.sessionId, owner);
        expect(await known()).toEqual(['Mine again']);
        expect(await facts.history(id, owner)).toEqual([]);
      }));

    test('S818: erasing an owner deletes what came from the owner, also where others read it', () =>
      using(async (store) => {
        const { app, turn, facts } = memoryApp(store);
        const shared = app.defineMemory({ name: 'shared', schema, scope: 'app' });
        await turn('one', {}, remember('One'), 'ok');
        await facts.add({ text: 'Two' }, owner);
        await facts.add({ text: 'Of bob' }, { owner: 'bob' });
        await shared.add({ text: 'From ada' }, owner);
        await shared.add({ text: 'From bob' }, { owner: 'bob' });
        await store.maintenance?.eraseOwner('ada');
        expect((await facts.list(owner)).items).toEqual([]);
        expect((await facts.list({ owner: 'bob' })).items).toHaveLength(1);
        const left = (await shared.list({ owner: 'bob' })).items;
        expect(left.map(({ value }) => value.text)).toEqual(['From bob']);
      }));

    test('S817: a failed turn remembers nothing, and a stopped one keeps what finished calls wrote', () =>
      using(async (store) => {
        const { assistant, turn, known, model } = memoryApp(store, () => {});
        const failing = turn('fail', {}, remember('Failed'), { error: new Error('broken') });
        await expect(failing).rejects.toThrow('broken');
        expect(await known()).toEqual([]);
        model.add(remember('Kept'), { text: 'I am', hang: true });
        const stop = new AbortController();
        const stopped = assistant.run('stop', { ...owner, signal: stop.signal });
        await eventually(() => expect(model.requests).toHaveLength(4));
        stop.abort();
        expect((await stopped).finishReason).toBe('aborted');
        expect(await known()).toEqual(['Kept']);
      }));

    test('S823 S819: a turn sees its own writes, and forgetting in a turn is taken back by a restore', () =>
      using(async (store) => {
        const { assistant, turn, known, model, facts } = memoryApp(store);
        const one = await turn(
          'one',
          {},
          remember('Tea'),
          { toolCalls: [{ name: 'recall', input: { query: 'tea' } }] },
          'ok',
        );
        expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('Tea');
        const [{ id } = { id: '' }] = (await facts.list(owner)).items;
        const { sessionId } = one;
        const forget = { toolCalls: [{ name: 'forget', input: { id } }] };
        await turn('forget', { sessionId }, forget, 'ok');
        expect(await known()).toEqual([]);
        await assistant.restore(one.snapshotId, owner);
        expect(await known()).toEqual(['Tea']);
        expect(await facts.forget(id, owner)).toBe(true);
        expect(await known()).toEqual([]);
        expect(await facts.history(id, owner)).toEqual([]);
        expect(await facts.forget(id, owner)).toBe(false);
      }));

    test('S817: a background run remembers when it ends, also after a takeover', () =>
      using(async (store) => {
        // The first app closes, and the store stays open.
        const first = memoryApp({ ...store, close: async () => {} });
        first.model.add(remember('One'), { text: 'Two is', hang: true });
        const { id } = await first.assistant.start('work', owner);
        await eventually(() => expect(first.model.requests).toHaveLength(2));
        expect(await first.known()).toEqual([]);
        await first.app.close({ grace: 0 });
        const second = memoryApp({ ...store, close: async () => {} });
        second.model.add(remember('Two'), 'done');
        await eventually(async () => {
          const snapshot = await second.assistant.getSnapshot(id, owner);
          expect(snapshot?.status).toBe('succeeded');
        });
        const { items } = await second.facts.list(owner);
        expect(items.map(({ value }) => value.text)).toEqual(['Two', 'One']);
        expect(items.map(({ source }) => source?.snapshotId)).toEqual([id, id]);
        await second.app.close();
      }));

    test('S817: a background run that is aborted remembers nothing', () =>
      using(async (store) => {
        const { assistant, model, known } = memoryApp(store);
        model.add(remember('One'), { text: 'Two is', hang: true });
        const { id } = await assistant.start('work', owner);
        await eventually(() => expect(model.requests).toHaveLength(2));
        await assistant.abort(id, owner);
        await eventually(async () => {
          const snapshot = await assistant.getSnapshot(id, owner);
          expect(snapshot?.status).toBe('aborted');
        });
        expect(await known()).toEqual([]);
      }));

    test('S819: prune deletes old entries and those beyond a number', () =>
      using(async (store) => {
        const { facts, known } = memoryApp(store);
        for (const text of ['One', 'Two', 'Three']) await facts.add({ text }, owner);
        expect(await facts.prune({ ...owner, keepLast: 2 })).toBe(1);
        expect(await known()).toEqual(['Three', 'Two']);
        expect(await facts.prune({ ...owner, olderThan: 86_400_000 })).toBe(0);
        await expect(facts.prune(owner)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
      }));

    test('S824: scopes of an agent and of the app are written by turns only where `canWrite` says so', () =>
      using(async (store) => {
        const model = scriptedModel([]);
        const app = waymark({ model, store, onError: () => {} });
        const read = app.defineMemory({ name: 'read', schema, scope: 'app' });
        const write = app.defineMemory({
          name: 'write',
          schema,
          scope: 'agent',
          canWrite: (context) => context.role === 'editor',
        });
        const reader = app.defineAgent({ name: 'reader', memory: read });
        const writer = app.defineAgent({ name: 'writer', memory: write });
        await read.add({ text: 'House rule' });
        model.add('ok');
        await reader.run('hi', owner);
        const [request] = model.requests;
        expect(memoryIn(request?.messages)).toContain('House rule');
        expect(request?.tools.map(({ name }) => name)).toEqual(['recall']);
        model.add(remember('Denied'), 'ok', remember('Learned'), 'ok');
        await writer.run('hi', owner);
        await writer.run('hi', { ...owner, context: { role: 'editor' } });
        const { items } = await write.list({ agent: 'writer', owner: 'bob' });
        expect(items).toMatchObject([{ value: { text: 'Learned' } }]);
        expect(items[0]).not.toHaveProperty('source');
        const own = await write.list({ agent: 'writer', ...owner });
        expect(own.items[0]?.source).toMatchObject({ agent: 'writer' });
      }));

    test('S826: bad input is refused, and loses no turn', () =>
      using(async (store) => {
        const onError = vi.fn();
        const { facts, turn, model, known, assistant } = memoryApp(store, onError);
        const invalid = { status: 'INVALID_ARGUMENT' };
        await expect(facts.add({ text: 1 } as never, owner)).rejects.toMatchObject(invalid);
        await expect(facts.add({ text: 'x'.repeat(20_000) }, owner)).rejects.toMatchObject(invalid);
        await expect(facts.add({ text: 'x' })).rejects.toMatchObject(invalid);
        await expect(facts.search('x')).rejects.toMatchObject(invalid);
        await expect(facts.update('none', { text: 'x' }, owner)).rejects.toMatchObject({
          status: 'NOT_FOUND',
        });
        const wrong = { toolCalls: [{ name: 'remember', input: { what: 'x' } }] };
        await turn('wrong', {}, wrong, 'sorry');
        model.add(remember('Nobody'), 'ok');
        await assistant.run('without an owner');
        expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain('owner');
        const many = Array.from({ length: 1_100 }, (_, at) => ({
          name: 'remember',
          input: { text: `Entry ${at}` },
          ref: `many-${at}`,
        }));
        await turn('many', {}, { toolCalls: many }, 'ok');
        expect(await known({ limit: 2_000 })).toHaveLength(1_000);
      }));
  });
}
