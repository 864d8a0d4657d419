import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../src/client/index.ts';
import { memoryStore, waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

const model = scriptedModel([]);
const app = waymark({ model, store: memoryStore() });
const facts = app.defineMemory({
  name: 'facts',
  schema: z.object({ text: z.string() }),
  canWrite: (context) => context.role !== 'guest',
});
app.defineAgent({ name: 'assistant', memory: facts });
app.defineAgent({ name: 'plain' });
const operations: string[] = [];
let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  server = await serve(app, {
    port: 0,
    auth: (request) => {
      const name = request.headers.get('authorization') ?? '';
      return { principal: name, context: { role: name === 'guest' ? 'guest' : 'user' } };
    },
    authorize: ({ operation, principal }) => {
      operations.push(operation);
      return principal !== 'nobody';
    },
  });
});
afterAll(async () => {
  await server.close();
  await app.close();
});

const as = (name: string) =>
  createClient({ url: server.url, headers: { authorization: name } }).agent('assistant');

test('S944 memory is read and written over HTTP as in process, for the owner of the caller', async () => {
  const { memory } = as('ann');
  const added = await memory.add({ text: 'Prefers tea' });
  expect((await memory.list()).items).toMatchObject([
    { id: added.id, value: { text: 'Prefers tea' } },
  ]);
  expect((await as('bob').memory.list()).items).toEqual([]);
  await expect(as('bob').memory.update(added.id, { text: 'x' })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
  expect(await as('bob').memory.forget(added.id)).toBe(false);
  expect(await as('bob').memory.history(added.id)).toEqual([]);
  await memory.update(added.id, { text: 'Prefers coffee' });
  expect((await memory.history(added.id)).map(({ value }) => value)).toEqual([
    { text: 'Prefers tea' },
    { text: 'Prefers coffee' },
  ]);
  const found = (await memory.list({ query: 'coffee' })).items;
  expect(found).toMatchObject([{ id: added.id, score: expect.any(Number) }]);
  await expect(memory.add({ text: 1 })).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  expect(await memory.forget(added.id)).toBe(true);
  expect(await memory.forget(added.id)).toBe(false);
});

test('S944 `ofTurn` tells what a turn knew and learned', async () => {
  const ann = as('ann');
  const { id } = await ann.memory.add({ text: 'Has a dog' });
  model.add({ toolCalls: [{ name: 'remember', input: { text: 'Lives in Lisbon' } }] }, 'ok');
  const turn = await ann.run('I live in Lisbon');
  const snapshot = turn.snapshotId ?? '';
  await ann.memory.update(id, { text: 'Has a cat' });
  expect(await ann.memory.ofTurn(turn)).toMatchObject({
    given: [{ id, value: { text: 'Has a dog' } }],
    deleted: 0,
    learned: [{ value: { text: 'Lives in Lisbon' }, source: { snapshotId: snapshot } }],
  });
  const then = await ann.memory.list({ asOf: snapshot });
  expect(then.items.map(({ value }) => value)).toContainEqual({ text: 'Lives in Lisbon' });
  await ann.memory.forget(id);
  expect(await ann.memory.ofTurn(snapshot)).toMatchObject({ given: [], deleted: 1 });
  await expect(as('bob').memory.ofTurn(snapshot)).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await expect(as('bob').memory.list({ asOf: snapshot })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
});

test('S944 `canWrite` and `authorize` decide who writes and reads over HTTP', async () => {
  const denied = { status: 'PERMISSION_DENIED' };
  await expect(as('guest').memory.add({ text: 'x' })).rejects.toMatchObject(denied);
  await expect(as('guest').memory.forget('x')).rejects.toMatchObject(denied);
  expect((await as('guest').memory.list()).items).toEqual([]);
  operations.length = 0;
  const { memory } = as('nobody');
  const id = '00000000-0000-7000-8000-000000000000';
  const calls = [
    () => memory.list(),
    () => memory.history('x'),
    () => memory.add({ text: 'x' }),
    () => memory.update('x', { text: 'x' }),
    () => memory.forget('x'),
    () => memory.ofTurn(id),
  ];
  for (const call of calls) await expect(call()).rejects.toMatchObject(denied);
  expect(operations.toSorted()).toEqual([
    ...['addMemory', 'forgetMemory', 'listMemory', 'memoryHistory', 'memoryOfTurn', 'updateMemory'],
  ]);
  const plain = createClient({ url: server.url, headers: { authorization: 'ann' } }).agent('plain');
  await expect(plain.memory.list()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
});
