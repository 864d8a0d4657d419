import { afterEach, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { createAgentStore } from 'waymark/react';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { Ledger } from '../support/ledger.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A desk that books hotels, behind a server that authenticates by name. */
async function open(refused: readonly string[] = []) {
  const hotels = new Ledger();
  const contexts: unknown[] = [];
  const model = scriptedModel({
    patterns: [
      [/^book (\w+)/, ([, hotel = '']) => ({ toolCalls: [{ name: 'book', input: { hotel } }] })],
    ],
    afterTools: () => 'Done.',
    otherwise: 'Hello.',
  });
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  const book = app.defineTool(
    {
      name: 'book',
      description: 'Books a hotel',
      input: z.object({ hotel: z.string() }),
      output: z.object({ id: z.string() }),
      undo: ({ output, idempotencyKey, context }) => {
        contexts.push(context);
        hotels.undo(output.id, idempotencyKey);
      },
    },
    ({ hotel }, { idempotencyKey }) => hotels.do(hotel, idempotencyKey),
  );
  app.defineAgent({ name: 'desk', tools: [book] });
  const operations: string[] = [];
  const server = await serve(app, {
    port: 0,
    log: () => {},
    auth: (request) => {
      const principal = request.headers.get('authorization');
      return principal ? { principal, context: { user: principal } } : undefined;
    },
    authorize: ({ operation }) => {
      operations.push(operation);
      return !refused.includes(operation);
    },
  });
  closers.push(() => server.close());
  const as = (name: string) =>
    createClient({ url: server.url, headers: { authorization: name } }).agent('desk');
  return { hotels, contexts, operations, as, url: server.url };
}

test('S760 S761 S763 a client plans and undoes over HTTP, with the context of its caller', async () => {
  const { hotels, contexts, operations, as } = await open();
  const desk = as('ann');
  const first = await desk.run('Hi');
  await desk.run('book Ritz', { sessionId: first.sessionId });
  const plan = await desk.planUndo(first);
  expect(plan.effects).toMatchObject([
    { tool: 'book', input: { hotel: 'Ritz' }, output: { id: 'Ritz-1' }, undo: 'possible' },
  ]);
  const restored = await desk.restore(first, { undo: plan });
  expect(restored.snapshotId).toBe(first.snapshotId);
  expect(hotels.standing).toEqual([]);
  expect(contexts).toEqual([{ user: 'ann' }]);
  // Restores without undo are another operation.
  await desk.restore(first);
  expect(operations.slice(-3)).toEqual(['planUndo', 'undo', 'restore']);
});

test('S764 S765 a plan that is out of date, or what cannot be undone, is refused over HTTP as well', async () => {
  const { hotels, as, url } = await open();
  const desk = as('ann');
  const first = await desk.run('Hi');
  const { sessionId } = first;
  await desk.run('book Ritz', { sessionId });
  const plan = await desk.planUndo(first);
  await desk.run('book Savoy', { sessionId });
  await expect(desk.restore(first, { undo: plan })).rejects.toMatchObject({
    status: 'ABORTED',
    details: { plan: { effects: [{ input: { hotel: 'Savoy' } }, { input: { hotel: 'Ritz' } }] } },
  });
  // Of another user.
  await expect(as('bob').planUndo(first)).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await expect(as('bob').restore(first, { undo: plan })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
  const post = (body: unknown): Promise<Response> =>
    fetch(`${url}/agents/desk/snapshots/${first.snapshotId}/undo`, {
      method: 'POST',
      headers: { authorization: 'ann', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  for (const bad of [{}, { undo: false }, { undo: { id: plan.id } }, { undo: true, more: 1 }]) {
    expect((await post(bad)).status).toBe(400);
  }
  expect(hotels.standing).toHaveLength(2);
  expect((await post({ undo: true })).status).toBe(200);
  expect(hotels.standing).toEqual([]);
});

test('`authorize` can allow a restore and refuse an undo', async () => {
  const { hotels, as } = await open(['undo']);
  const desk = as('ann');
  const first = await desk.run('Hi');
  await desk.run('book Ritz', { sessionId: first.sessionId });
  const plan = await desk.planUndo(first);
  await expect(desk.restore(first, { undo: plan })).rejects.toMatchObject({
    status: 'PERMISSION_DENIED',
  });
  await desk.restore(first);
  expect(hotels.standing).toEqual(['Ritz-1']);
});

test('S763 the React store shows a plan and restores with it', async () => {
  const { hotels, as } = await open();
  const store = createAgentStore({ agent: as('ann'), throttle: 0 });
  await store.actions.send('Hi');
  await store.actions.send('book Ritz');
  await store.actions.loadTimeline();
  const first = store.getView().timeline[0] ?? expect.fail('no snapshot');
  const plan = await store.actions.planUndo(first);
  expect(plan?.effects).toMatchObject([{ tool: 'book', undo: 'possible' }]);
  if (plan === undefined) return;
  expect(await store.actions.restore(first, { undo: plan })).toBe(true);
  expect(hotels.standing).toEqual([]);
  expect(store.getView().messages).toHaveLength(2);
  expect(await store.actions.planUndo('00000000-0000-7000-8000-000000000000')).toBeUndefined();
  expect(store.getView().error).toMatchObject({ status: 'NOT_FOUND' });
});
