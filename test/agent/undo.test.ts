import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type App,
  type AppOptions,
  agentTool,
  type Middleware,
  memoryStore,
  type Store,
  tool,
  waymark,
} from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { replay } from 'waymark/replay';
import { sqliteStore } from 'waymark/sqlite';
import type { RunRef, RunSupport } from 'waymark/store';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { Ledger } from '../support/ledger.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'waymark-undo-'));
  closers.push(() => rm(made, { recursive: true, force: true }));
  return made;
}

let schemas = 0;

/** Opens a store, again and again over the same content. */
const stores: Readonly<Record<string, () => Promise<() => Store>>> = {
  memory: async () => {
    const store = memoryStore();
    return () => store;
  },
  files: async () => {
    const path = await folder();
    return () => fileStore(path);
  },
  sqlite: async () => {
    const path = join(await folder(), 'undo.db');
    return () => sqliteStore(path, { encryption: { key: '5a'.repeat(32) } });
  },
  postgres: async () => {
    const schema = `undo_${schemas++}`;
    return () => postgresStore({ connectionString: postgres.connectionString, schema, max: 4 });
  },
};

/** "do [["book", { "hotel": "A" }]]" calls these tools at once; with "then fail", the turn fails after them. */
const model = () =>
  scriptedModel({
    patterns: [
      [/^wait/, { hang: true }],
      [
        /^do (\[.*\])/,
        ([, calls = '[]']) => ({
          toolCalls: (JSON.parse(calls) as [string, object][]).map(([name, input]) => ({
            name,
            input: input as never,
          })),
        }),
      ],
    ],
    afterTools: ({ messages }) => {
      const asked = messages.findLast(({ role }) => role === 'user');
      const fails = JSON.stringify(asked).includes('then fail');
      return fails ? { error: new Error('The model is down.') } : 'Done.';
    },
    otherwise: 'Hello.',
  });

const calls = (...list: readonly (readonly [string, object])[]): string =>
  `do ${JSON.stringify(list)}`;
const book = (hotel: string): string => calls(['book', { hotel }]);

function appOver(store: Store, options: Partial<AppOptions> = {}): App {
  const app = waymark({ model: model(), store, onError: () => {}, ...options });
  closers.push(() => app.close({ grace: 0 }));
  return app;
}

/** An app with an agent whose tools book hotels, send mails and look things up. */
function desk(store: Store, hotels: Ledger, options: Partial<AppOptions> = {}) {
  const app = appOver(store, options);
  const bookTool = app.defineTool(
    {
      name: 'book',
      description: 'Books a hotel',
      input: z.object({ hotel: z.string() }),
      output: z.object({ bookingId: z.string() }),
      undo: ({ output, idempotencyKey }) => hotels.undo(output.bookingId, idempotencyKey),
    },
    ({ hotel }, { idempotencyKey }) => {
      if (hotel === 'Full') throw new Error('No rooms.');
      return { bookingId: hotels.do(hotel, idempotencyKey).id };
    },
  );
  const mail = app.defineTool(
    { name: 'mail', description: 'Sends a mail', input: z.object({ to: z.string() }) },
    () => 'sent',
  );
  const look = app.defineTool({ name: 'look', description: 'Looks', effect: 'none' }, () => 'seen');
  const write = app.defineTool(
    { name: 'write', description: 'Writes a file', effect: 'workspace' },
    () => 'written',
  );
  const agent = app.defineAgent({ name: 'desk', tools: [bookTool, mail, look, write] });
  return { app, agent };
}

const brief = (plan: { readonly effects: readonly { tool: string; undo: string }[] }) =>
  plan.effects.map(({ tool: name, undo }) => `${name}: ${undo}`);

describe.each(Object.keys(stores))('undo over %s', (name) => {
  const opened = async (): Promise<Store> => {
    const open = await stores[name]?.();
    if (open === undefined) throw new Error('no store');
    return open();
  };

  test('S760 S763 a plan has what happened after a snapshot, and a restore undoes it, newest first', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run(book('Ritz'), { sessionId });
    await agent.run(book('Savoy'), { sessionId });
    const plan = await agent.planUndo(first);
    expect(plan.effects).toMatchObject([
      {
        tool: 'book',
        input: { hotel: 'Savoy' },
        output: { bookingId: 'Savoy-2' },
        undo: 'possible',
      },
      { tool: 'book', input: { hotel: 'Ritz' }, output: { bookingId: 'Ritz-1' }, undo: 'possible' },
    ]);
    const { items } = await agent.listSnapshots(sessionId);
    expect(plan.effects.map(({ snapshotId }) => snapshotId)).toEqual(
      items
        .slice(1)
        .reverse()
        .map(({ snapshotId }) => snapshotId),
    );
    expect(Date.parse(plan.effects[0]?.at ?? '')).toBeGreaterThan(0);
    expect(hotels.standing).toEqual(['Ritz-1', 'Savoy-2']);
    const restored = await agent.restore(first, { undo: plan });
    expect(restored.snapshotId).toBe(first.snapshotId);
    expect((await agent.getSession(sessionId))?.headId).toBe(first.snapshotId);
    expect([...hotels.undone.keys()]).toEqual(['Savoy-2', 'Ritz-1']);
    expect(await agent.listRuns()).toEqual({ items: [] });
    // The session continues as after any restore.
    await agent.run(book('Plaza'), { sessionId });
    expect(brief(await agent.planUndo(first))).toEqual(['book: possible']);
  });

  test('S761 the undo gets a key of its own, the same in every attempt, and the context of the caller', async () => {
    const seen: unknown[] = [];
    const app = appOver(await opened());
    let key = '';
    const pay = app.defineTool(
      {
        name: 'pay',
        description: 'Pays',
        input: z.object({ amount: z.number() }),
        undo: {
          attempts: 2,
          run: ({ input, output, idempotencyKey, context, signal }) => {
            seen.push({ input, output, idempotencyKey, context, aborted: signal.aborted });
            if (seen.length === 1) throw new Error('The bank is closed.');
          },
        },
      },
      (_, { idempotencyKey }) => {
        key = idempotencyKey;
        return { paid: true };
      },
    );
    const agent = app.defineAgent({ name: 'payer', tools: [pay] });
    const first = await agent.run('Hi');
    await agent.run(calls(['pay', { amount: 5 }]), { sessionId: first.sessionId });
    await agent.restore(first, { undo: true, context: { user: 'ann' } });
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[0]).toMatchObject({
      input: { amount: 5 },
      output: { paid: true },
      context: { user: 'ann' },
      aborted: false,
    });
    const { idempotencyKey } = seen[0] as { idempotencyKey: string };
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(idempotencyKey).toMatch(/^[0-9a-f]{64}$/);
    expect(idempotencyKey).not.toBe(key);
  });

  test('S764 what cannot be undone comes first, and `undo: true` refuses it unless forced', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run(calls(['mail', { to: 'bob' }], ['look', {}], ['write', {}]), { sessionId });
    await agent.run(book('Ritz'), { sessionId });
    await agent.run(book('Full'), { sessionId });
    const plan = await agent.planUndo(first);
    expect(brief(plan)).toEqual(['book: impossible', 'mail: impossible', 'book: possible']);
    expect(plan.effects.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('result is not known'),
      expect.stringContaining('no `undo`'),
      undefined,
    ]);
    await expect(agent.restore(first, { undo: true })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    expect(hotels.undone.size).toBe(0);
    const { snapshotId } = await agent.restore(first, { undo: true, force: true });
    expect(snapshotId).toBe(first.snapshotId);
    expect(hotels.standing).toEqual([]);
  });

  test('S762 failed turns that hang on the path count, those of another branch do not', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    const from = { sessionId, throwOnError: false } as const;
    await agent.run(`${book('Left')}`, from);
    await agent.restore(first);
    await agent.run(`${book('Failed')} then fail`, from);
    await agent.run(book('Ritz'), from);
    await agent.run(`${book('Later')} then fail`, from);
    const plan = await agent.planUndo(first);
    expect(plan.effects.map(({ input }) => input)).toEqual([
      { hotel: 'Later' },
      { hotel: 'Ritz' },
      { hotel: 'Failed' },
    ]);
    await agent.restore(first, { undo: plan });
    expect(hotels.standing).toEqual(['Left-1']);
    // A second look: nothing is left to do, and what was undone is told. The last turn hangs on another branch now.
    expect(brief(await agent.planUndo(first))).toEqual(['book: done']);
  });

  test('S765 a plan that is out of date, or was carried out before, is refused with a new one', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run(book('Ritz'), { sessionId });
    const plan = await agent.planUndo(first);
    await agent.run(book('Savoy'), { sessionId });
    const refused = await agent.restore(first, { undo: plan }).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      status: 'ABORTED',
      details: { plan: { effects: [{ input: { hotel: 'Savoy' } }, { input: { hotel: 'Ritz' } }] } },
    });
    expect(hotels.undone.size).toBe(0);
    const next = await agent.planUndo(first);
    // Only the id counts.
    const forged = { ...next, effects: [], snapshotId: 'x' };
    await agent.restore(first, { undo: forged });
    expect(hotels.standing).toEqual([]);
    await expect(agent.restore(first, { undo: next })).rejects.toMatchObject({ status: 'ABORTED' });
    for (const keys of hotels.undone.values()) expect(keys.size).toBe(1);
    await expect(agent.restore(first, { undo: {} as never })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    await expect(agent.restore(first, { undo: next, ifHead: next.id })).rejects.toMatchObject({
      status: 'ABORTED',
    });
  });

  test('S766 an undo that fails ends the run as failed, keeps the head, and marks nothing', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    const ritz = await agent.run(book('Ritz'), { sessionId });
    const savoy = await agent.run(book('Savoy'), { sessionId });
    hotels.fail(new Error('secret: the hotel is closed'));
    const error = await agent.restore(first, { undo: true }).catch((each: unknown) => each);
    expect(error).toMatchObject({
      status: 'UNKNOWN',
      message: expect.stringContaining('hotel is closed'),
    });
    const session = await agent.getSession(sessionId);
    expect(session?.headId).toBe(savoy.snapshotId);
    const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
    expect(items.at(-1)).toMatchObject({
      status: 'failed',
      event: 'detach',
      parentId: savoy.snapshotId,
    });
    expect(JSON.stringify(items.at(-1))).not.toContain('secret');
    expect(brief(await agent.planUndo(first))).toEqual(['book: possible', 'book: possible']);
    // Half of it, then the rest.
    hotels.fail(undefined);
    await agent.restore(ritz, { undo: true });
    expect(brief(await agent.planUndo(first))).toEqual(['book: possible']);
    await agent.restore(first, { undo: true });
    expect(hotels.standing).toEqual([]);
  });

  test('S767 an effect that a labelled snapshot or a fork relies on is undone only if forced', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    const ritz = await agent.run(book('Ritz'), { sessionId });
    const savoy = await agent.run(book('Savoy'), { sessionId });
    const fork = await agent.fork(ritz);
    const undos = async () => (await agent.planUndo(first)).effects.map(({ undo }) => undo);
    expect(await undos()).toEqual(['possible', 'needed by another branch']);
    await agent.label(savoy, 'keep');
    expect(await undos()).toEqual(['needed by another branch', 'needed by another branch']);
    await agent.label(savoy, null);
    // A fork of the fork relies on it as well, also when the fork between them is gone.
    const again = await agent.fork(fork);
    await agent.deleteSession(fork.sessionId);
    // Where it was forked from is not known any more.
    expect(await undos()).toEqual(['needed by another branch', 'needed by another branch']);
    await agent.deleteSession(again.sessionId);
    expect(await undos()).toEqual(['possible', 'possible']);
    const other = await agent.fork(ritz);
    const plan = await agent.planUndo(first);
    await agent.restore(first, { undo: plan });
    expect(hotels.standing).toEqual(['Ritz-1']);
    // Restoring forward does nothing again: the plan warns of what is undone.
    expect(brief(await agent.planUndo(savoy))).toEqual(['book: done']);
    await agent.restore(savoy, { undo: true });
    expect(hotels.standing).toEqual(['Ritz-1']);
    expect(await undos()).toEqual(['done', 'needed by another branch']);
    await agent.restore(first, { undo: true, force: true });
    expect(hotels.standing).toEqual([]);
    expect(await agent.getSession(other.sessionId)).toBeDefined();
  });

  test('S768 the effects of sub-agents count, at any depth', async () => {
    const hotels = new Ledger();
    const app = appOver(await opened());
    const bookTool = tool(
      {
        name: 'book',
        description: 'Books',
        input: z.object({ hotel: z.string() }),
        undo: ({ output, idempotencyKey }) =>
          hotels.undo((output as { id: string }).id, idempotencyKey),
      },
      ({ hotel }, { idempotencyKey }) => hotels.do(hotel, idempotencyKey),
    );
    const mail = tool({ name: 'mail', description: 'Sends a mail' }, () => 'sent');
    const inner = app.defineAgent({ name: 'inner', tools: [bookTool, mail] });
    const middle = app.defineAgent({ name: 'middle', tools: [agentTool(inner)] });
    const outer = app.defineAgent({ name: 'outer', tools: [agentTool(middle)] });
    const ask = (agent: string, message: string): string => calls([agent, { message }]);
    const first = await outer.run('Hi');
    const { sessionId } = first;
    const deep = ask('middle', ask('inner', calls(['book', { hotel: 'Ritz' }], ['mail', {}])));
    await outer.run(deep, { sessionId });
    const plan = await outer.planUndo(first);
    expect(plan.effects).toMatchObject([
      { tool: 'mail', agent: 'inner', undo: 'impossible' },
      { tool: 'book', agent: 'inner', input: { hotel: 'Ritz' }, undo: 'possible' },
    ]);
    await outer.restore(first, { undo: plan });
    expect(hotels.standing).toEqual([]);
  });

  test('S769 a step of a custom agent names its undo', async () => {
    const hotels = new Ledger();
    const app = appOver(await opened());
    const agent = app.defineCustomAgent(
      {
        name: 'steps',
        undo: {
          book: ({ input, output, idempotencyKey }) => {
            expect(input).toEqual({ hotel: 'Ritz' });
            hotels.undo((output as { id: string }).id, idempotencyKey);
          },
        },
      },
      async (session) => {
        await session.run(async ({ message }) => {
          if (JSON.stringify(message).includes('Hi')) return;
          const undo = JSON.stringify(message).includes('wrong') ? 'nothing' : 'book';
          await session.step('ritz', () => hotels.do('Ritz', 'k'), {
            undo,
            input: { hotel: 'Ritz' },
          });
          session.addMessages({ role: 'model', content: [{ text: 'Booked.' }] });
        });
      },
    );
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run('book', { sessionId });
    const plan = await agent.planUndo(first);
    expect(plan.effects).toMatchObject([
      { tool: 'book', input: { hotel: 'Ritz' }, output: { id: 'Ritz-1' }, undo: 'possible' },
    ]);
    await agent.restore(first, { undo: plan });
    expect(hotels.standing).toEqual([]);
    await expect(agent.run('wrong', { sessionId })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  });

  test('S770 an undo that is gone from the code, and an imported call, are impossible', async () => {
    const open = await stores[name]?.();
    const hotels = new Ledger();
    const { agent, app } = desk(open?.() as Store, hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run(book('Ritz'), { sessionId });
    const store = app.store as Store;
    const exported = await store.maintenance?.exportSession({ agent: 'desk' }, sessionId);
    const imported = await store.maintenance?.importSession({ agent: 'desk' }, exported as never, {
      sessionId: 'imported',
    });
    const copies = await agent.listSnapshots(imported?.sessionId ?? '');
    const copied = await agent.planUndo(copies.items[0]?.snapshotId ?? '');
    expect(copied.effects).toMatchObject([{ tool: 'book', undo: 'impossible' }]);
    const newer = appOver(store);
    const plain = newer.defineTool({ name: 'book', description: 'Books' }, () => 1);
    const desk2 = newer.defineAgent({ name: 'desk', tools: [plain] });
    const plan = await desk2.planUndo(first);
    expect(plan.effects).toMatchObject([
      { undo: 'impossible', reason: 'This version of the code has no `undo` for "book".' },
    ]);
    expect(hotels.standing).toEqual(['Ritz-1']);
  });

  test('S771 undoing is refused while a turn runs, for other owners, and for unknown or failed snapshots', async () => {
    const hotels = new Ledger();
    const { agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi', { owner: 'ann' });
    const { sessionId } = first;
    await agent.run(book('Ritz'), { sessionId, owner: 'ann' });
    const plan = await agent.planUndo(first, { owner: 'ann' });
    for (const owner of ['bob', undefined]) {
      const as = owner === undefined ? {} : { owner };
      await expect(agent.planUndo(first, as)).rejects.toMatchObject({ status: 'NOT_FOUND' });
      await expect(agent.restore(first, { undo: plan, ...as })).rejects.toMatchObject({
        status: 'NOT_FOUND',
      });
    }
    const stop = new AbortController();
    const turn = agent.stream('wait', { sessionId, owner: 'ann', signal: stop.signal });
    for await (const chunk of turn.stream) {
      if (!chunk.turnStart) continue;
      await expect(agent.restore(first, { undo: true, owner: 'ann' })).rejects.toMatchObject({
        status: 'ABORTED',
      });
      stop.abort();
    }
    await turn.output;
    const lost = await agent.run(`${book('Full')} then fail`, {
      sessionId,
      owner: 'ann',
      throwOnError: false,
    });
    const { items } = await agent.listSnapshots(sessionId, { owner: 'ann', includeOrphaned: true });
    expect(lost.error).toBeDefined();
    await expect(agent.planUndo(items.at(-1) ?? '', { owner: 'ann' })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    expect(hotels.undone.size).toBe(0);
  });

  test('S772 an undo that hangs fails after its time, and a late result marks nothing', async () => {
    const app = appOver(await opened());
    const late = Promise.withResolvers<void>();
    let aborted = false;
    const slow = app.defineTool(
      {
        name: 'slow',
        description: 'Slow',
        undo: {
          timeout: 50,
          run: ({ signal }) => {
            signal.addEventListener('abort', () => {
              aborted = true;
            });
            return late.promise;
          },
        },
      },
      () => 1,
    );
    const agent = app.defineAgent({ name: 'slow', tools: [slow] });
    const first = await agent.run('Hi');
    await agent.run(calls(['slow', {}]), { sessionId: first.sessionId });
    await expect(agent.restore(first, { undo: true })).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
    });
    expect(aborted).toBe(true);
    late.resolve();
    await eventually(async () => brief(await agent.planUndo(first)).join() === 'slow: possible');
  });

  test('S773 two restores with the same plan: one carries it out', async () => {
    const open = await stores[name]?.();
    const hotels = new Ledger();
    const apps = [desk(open?.() as Store, hotels), desk(open?.() as Store, hotels)];
    const [one, two] = apps;
    if (one === undefined || two === undefined) throw new Error('two apps');
    const first = await one.agent.run('Hi');
    for (const hotel of ['A', 'B', 'C']) {
      await one.agent.run(book(hotel), { sessionId: first.sessionId });
    }
    const plan = await two.agent.planUndo(first);
    const ends = await Promise.allSettled(
      apps.map(({ agent }) => agent.restore(first, { undo: plan })),
    );
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { status: 'ABORTED' },
    });
    expect(hotels.standing).toEqual([]);
    for (const keys of hotels.undone.values()) expect(keys.size).toBe(1);
  });

  test('S774 a call that waits for an approval has no effect yet, and an approved one has its edited input', async () => {
    const hotels = new Ledger();
    const app = appOver(await opened());
    const bookTool = app.defineTool(
      {
        name: 'book',
        description: 'Books',
        input: z.object({ hotel: z.string() }),
        needsApproval: true,
        undo: ({ input }) => hotels.undo(`${input.hotel}-1`, 'k'),
      },
      ({ hotel }, { idempotencyKey }) => hotels.do(hotel, idempotencyKey),
    );
    const agent = app.defineAgent({ name: 'careful', tools: [bookTool] });
    const first = await agent.run('Hi');
    const { sessionId } = first;
    const asked = await agent.run(book('Ritz'), { sessionId });
    expect((await agent.planUndo(first)).effects).toEqual([]);
    await agent.resume(
      asked,
      asked.interrupts.map((each) => each.approve({ input: { hotel: 'Savoy' } })),
    );
    const plan = await agent.planUndo(first);
    expect(plan.effects).toMatchObject([{ input: { hotel: 'Savoy' }, undo: 'possible' }]);
    await agent.restore(first, { undo: plan });
    expect(hotels.standing).toEqual([]);
  });

  test('S775 a plan shows only what the transform of the agent lets out', async () => {
    const hotels = new Ledger();
    const app = appOver(await opened());
    const bookTool = app.defineTool(
      {
        name: 'book',
        description: 'Books',
        input: z.object({ hotel: z.string() }),
        undo: ({ output, idempotencyKey }) =>
          hotels.undo((output as { id: string }).id, idempotencyKey),
      },
      ({ hotel }, { idempotencyKey }) => hotels.do(hotel, idempotencyKey),
    );
    const agent = app.defineAgent({
      name: 'shy',
      tools: [bookTool],
      transform: {
        state: (state) => ({
          ...state,
          messages: state.messages?.filter(({ role }) => role === 'user') ?? [],
        }),
      },
    });
    const first = await agent.run('Hi');
    await agent.run(book('Ritz'), { sessionId: first.sessionId });
    const plan = await agent.planUndo(first);
    expect(JSON.stringify(plan)).not.toContain('Ritz');
    expect(brief(plan)).toEqual(['book: possible']);
    await agent.restore(first, { undo: plan });
    expect(hotels.standing).toEqual([]);
  });

  test('S764 an answer of a middleware is not the result of the call', async () => {
    const app = appOver(await opened());
    const undone: unknown[] = [];
    const pay = app.defineTool(
      {
        name: 'pay',
        description: 'Pays',
        undo: ({ output }) => {
          undone.push(output);
        },
      },
      () => {
        throw new Error('The answer of the bank was lost.');
      },
    );
    const lenient: Middleware = {
      name: 'lenient',
      tool: async (request, next) => await next(request).catch(() => 'paid later'),
    };
    const agent = app.defineAgent({ name: 'payer', tools: [pay], use: [lenient] });
    const first = await agent.run('Hi');
    await agent.run(calls(['pay', {}]), { sessionId: first.sessionId });
    const plan = await agent.planUndo(first);
    expect(plan.effects).toMatchObject([{ tool: 'pay', undo: 'impossible' }]);
    await agent.restore(first, { undo: plan });
    expect(undone).toEqual([]);
  });

  test('S773 a stopped undo keeps the head, and what it has undone stays marked', async () => {
    const app = appOver(await opened());
    const begun = Promise.withResolvers<void>();
    let isSlow = true;
    const pay = app.defineTool(
      {
        name: 'pay',
        description: 'Pays',
        input: z.object({ amount: z.number() }),
        undo: ({ input }) => {
          if (input.amount > 1 || !isSlow) return undefined;
          begun.resolve();
          return new Promise(() => {});
        },
      },
      () => 'paid',
    );
    const agent = app.defineAgent({ name: 'payer', tools: [pay] });
    const first = await agent.run('Hi');
    const { sessionId } = first;
    await agent.run(calls(['pay', { amount: 1 }]), { sessionId });
    const last = await agent.run(calls(['pay', { amount: 2 }]), { sessionId });
    const restoring = agent.restore(first, { undo: true }).catch((error: unknown) => error);
    await begun.promise;
    const [run] = (await agent.listRuns()).items;
    expect(run).toMatchObject({ sessionId });
    // Nothing else can be done with the session meanwhile.
    await expect(agent.run('Hi', { sessionId })).rejects.toMatchObject({ status: 'ABORTED' });
    await expect(agent.restore(first)).rejects.toMatchObject({ status: 'ABORTED' });
    await agent.abort(run?.snapshotId ?? '');
    expect(await restoring).toMatchObject({ status: 'CANCELLED' });
    expect((await agent.getSession(sessionId))?.headId).toBe(last.snapshotId);
    expect(brief(await agent.planUndo(first))).toEqual(['pay: done', 'pay: possible']);
    isSlow = false;
    await agent.restore(first, { undo: true });
    expect((await agent.getSession(sessionId))?.headId).toBe(first.snapshotId);
    await expect(agent.retryRun(run?.snapshotId ?? '')).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
  });

  test('S762 the effects of a turn whose process died are known', async () => {
    const open = await stores[name]?.();
    const hotels = new Ledger();
    const begun = Promise.withResolvers<void>();
    const make = (store: Store, isDying: boolean) => {
      const app = appOver(store, { claimTtl: 300, work: false });
      const bookTool = app.defineTool(
        {
          name: 'book',
          description: 'Books',
          input: z.object({ hotel: z.string() }),
          undo: ({ input, idempotencyKey }) => hotels.undo(`${input.hotel}-1`, idempotencyKey),
        },
        ({ hotel }, { idempotencyKey }) => {
          if (hotel !== 'Savoy' || !isDying) return hotels.do(hotel, idempotencyKey);
          begun.resolve();
          return new Promise<{ readonly id: string }>(() => {});
        },
      );
      return app.defineAgent({ name: 'desk', tools: [bookTool] });
    };
    const store = open?.() as Store;
    const gone = () => Promise.reject(new Error('The connection is lost.'));
    const runs = { ...store.runs, heartbeat: gone, release: gone, handOver: gone };
    const [one, two] = [
      make(Object.create(store, { runs: { value: runs } }), true),
      make(store, false),
    ];
    const first = await two.run('Hi');
    const { sessionId } = first;
    const lost = one.run(calls(['book', { hotel: 'Ritz' }], ['book', { hotel: 'Savoy' }]), {
      sessionId,
    });
    lost.catch(() => {});
    await begun.promise;
    const stored = ['book: impossible', 'book: possible'];
    // The claim is not renewed any more, and the next turn takes the session.
    await eventually(async () => brief(await two.planUndo(first)).join() === stored.join());
    await two.run('Hi', { sessionId });
    const plan = await two.planUndo(first);
    expect(brief(plan)).toEqual(stored);
    expect(plan.effects.map(({ input }) => input)).toEqual([{ hotel: 'Savoy' }, { hotel: 'Ritz' }]);
    await two.restore(first, { undo: plan });
    expect(hotels.standing).toEqual([]);
  });

  test('S776 a turn with `from`, a plain restore and a replay undo nothing', async () => {
    const hotels = new Ledger();
    const { app, agent } = desk(await opened(), hotels);
    const first = await agent.run('Hi');
    const { sessionId } = first;
    const booked = await agent.run(book('Ritz'), { sessionId });
    await agent.run('Hello', { from: first });
    await agent.restore(booked);
    const { turns } = await replay(app, { sessions: [sessionId] });
    expect(turns.length).toBeGreaterThan(0);
    expect(hotels.undone.size).toBe(0);
    expect(hotels.done.size).toBe(1);
    expect(brief(await agent.planUndo(first))).toEqual(['book: possible']);
  });

  test('S770 imported calls of sub-agents are listed as impossible', async () => {
    const hotels = new Ledger();
    const { app, agent: inner } = desk(await opened(), hotels);
    const outer = app.defineAgent({ name: 'outer', tools: [agentTool(inner)] });
    const { sessionId } = await outer.run('Hi');
    await outer.run(calls(['desk', { message: book('Ritz') }]), { sessionId });
    const { maintenance } = app.store as Store;
    const document = await maintenance?.exportSession({ agent: 'outer' }, sessionId);
    await maintenance?.importSession({ agent: 'outer' }, document as never, { sessionId: 'copy' });
    const { items } = await outer.listSnapshots('copy');
    const plan = await outer.planUndo(items[0] ?? '');
    expect(plan.effects).toMatchObject([
      { tool: 'book', agent: 'desk', input: { hotel: 'Ritz' }, undo: 'impossible' },
    ]);
    expect(hotels.undone.size).toBe(0);
  });
});

test('S776 without a store there is nothing to undo', async () => {
  const app = waymark({ model: model() });
  closers.push(() => app.close());
  const agent = app.defineAgent({ name: 'plain' });
  await expect(agent.planUndo('x')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  await expect(agent.restore('x', { undo: true })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
  });
});

test('S773 an undo that failed keeps its claim until that is saved', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore();
  let beats = 0;
  const runs = {
    ...store.runs,
    heartbeat: (ref: RunRef) => {
      beats++;
      return store.runs?.heartbeat(ref);
    },
    commit: async (...call: Parameters<RunSupport['commit']>) => {
      if (call[1].status === 'failed') {
        const before = beats;
        advance(30_000);
        await eventually(() => beats > before);
      }
      return await store.runs?.commit(...call);
    },
  };
  const hotels = new Ledger();
  const slow = Object.create(store, { runs: { value: runs } }) as Store;
  const { agent } = desk(slow, hotels, { clock, claimTtl: 60_000 });
  const first = await agent.run('Hi');
  await agent.run(book('Ritz'), { sessionId: first.sessionId });
  hotels.fail(new Error('closed'));
  await expect(agent.restore(first, { undo: true })).rejects.toMatchObject({ status: 'UNKNOWN' });
  expect(await agent.listRuns()).toEqual({ items: [] });
});
