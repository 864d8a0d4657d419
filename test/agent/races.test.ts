import { expect, test } from 'vitest';
import type { RunEnd } from '../../src/agent/contract/spec.ts';
import type { AgentConnection } from '../../src/api/types.ts';
import { type App, waymark } from '../../src/app.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { all, must, say, told } from './support/kit.ts';
import { Scheduler, scheduledModel, scheduledStore } from './support/scheduler.ts';

const times = process.env.LONG === '1' ? 150 : 50;
const first = Number(process.env.SEED ?? 1);
const claimTtl = 1_000;
/** Where nobody dies, nobody is taken for dead, however slow the scheduler lets a process be. */
const forever = 1e9;

interface Stage {
  readonly scheduler: Scheduler;
  readonly store: Store;
  /** An app as a process of its own. */
  app(who: string): App;
  /** Errors that no caller waited for. */
  readonly errors: unknown[];
}

/** Plays a race over many seeds; a failure names its seed: `SEED=… npx vitest run test/agent/races.test.ts -t …`. */
async function race(
  play: (stage: Stage) => Promise<void>,
  { ttl = forever }: { readonly ttl?: number } = {},
): Promise<void> {
  for (let seed = first; seed < first + times; seed++) {
    const scheduler = new Scheduler(seed);
    const store = memoryStore({ clock: scheduler, newId: scheduler.newId });
    const errors: unknown[] = [];
    const app = (who: string): App =>
      waymark({
        store: scheduledStore(store, scheduler, who),
        clock: scheduler,
        newId: scheduler.newId,
        claimTtl: ttl,
        onError: (error) => errors.push(error),
      });
    try {
      await scheduler.run(() => play({ scheduler, store, app, errors }));
      expect(await store.maintenance?.verify()).toEqual([]);
      expect(await store.runs?.listRuns()).toEqual([]);
    } catch (error) {
      if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
      throw error;
    }
  }
}

const scope = { agent: 'chat' };

async function saidIn(store: Store, sessionId: string): Promise<string[]> {
  return told((await store.getSnapshot(scope, { sessionId }))?.state?.messages);
}

/** Waits a number of decisions that the seed chooses. */
async function aWhile(scheduler: Scheduler, most: number): Promise<void> {
  for (let n = scheduler.choose(most); n > 0; n--) await scheduler.pause('somebody');
}

test('the same seed gives the same order, another one another', async () => {
  const traceOf = async (seed: number): Promise<string> => {
    const scheduler = new Scheduler(seed);
    const store = scheduledStore(memoryStore({ clock: scheduler }), scheduler, 'store');
    await scheduler.run(async () => {
      const app = waymark({ store, clock: scheduler, newId: scheduler.newId });
      const chat = app.defineAgent({
        name: 'chat',
        model: scheduledModel(scheduler, 'model', ['a', 'b']),
      });
      await Promise.all(['s', 't', 'u'].map((sessionId) => chat.runText('x', { sessionId })));
      const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
      await chat.wait(snapshotId);
      await app.close();
    });
    return scheduler.trace.join();
  };
  expect(await traceOf(1)).toBe(await traceOf(1));
  expect(await traceOf(1)).not.toBe(await traceOf(2));
});

test('S112 S113 S124 abort against finish of a detached run: whichever is written first stands', async () => {
  const seen = new Set<string>();
  await race(async ({ scheduler, store, app }) => {
    const [one, two] = [app('one'), app('two')];
    const ends: RunEnd[] = [];
    const define = (each: App) =>
      each.defineAgent({
        name: 'chat',
        model: scheduledModel(scheduler, 'model', ['a', 'b']),
        onFinish: (end) => void ends.push(end),
      });
    const [chat, other] = [define(one), define(two)];
    const { snapshotId = '', sessionId } = await chat.run({ ...say('x'), detach: true });
    await aWhile(scheduler, 25);
    const status = await other.abort(snapshotId);
    const ended = await chat.wait(snapshotId);
    expect(['succeeded', 'aborted']).toContain(ended.status);
    expect(status).toBe(ended.status);
    seen.add(ended.status);
    const session = await store.timeline?.getSession(scope, sessionId);
    expect(session?.headId).toBe(ended.status === 'succeeded' ? snapshotId : undefined);
    expect(await chat.runText('y', { sessionId })).toMatchObject({ finishReason: 'stop' });
    expect(await saidIn(store, sessionId)).toEqual([
      ...(ended.status === 'succeeded' ? ['user: x', 'model: ab'] : []),
      'user: y',
      'model: ab',
    ]);
    await one.close();
    await two.close();
    expect(ends.map(({ snapshot }) => snapshot.status)).toEqual([ended.status]);
    expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({ status: ended.status });
  });
  expect(seen.size).toBe(2);
});

test('S53 S55 S58 abort against finish of an attached turn: it ends once, and what there is is kept', async () => {
  const seen = new Set<string>();
  await race(async ({ scheduler, store, app }) => {
    const [one, two] = [app('one'), app('two')];
    const model = scheduledModel(scheduler, 'model', ['a', 'b']);
    const chat = one.defineAgent({ name: 'chat', model });
    const other = two.defineAgent({ name: 'chat', model });
    const connection = chat.streamBidi();
    await connection.sendText('x');
    let snapshotId = '';
    for await (const { turnStart } of connection.receive()) {
      snapshotId = must(turnStart?.snapshotId);
      break;
    }
    const aborting = aWhile(scheduler, 20).then(() => other.abort(snapshotId));
    const output = await connection.output();
    expect(['pending', 'succeeded']).toContain(await aborting);
    expect(output.error).toBeUndefined();
    seen.add(must(output.finishReason));
    const ends = (await all(connection.receive())).filter(({ turnEnd }) => turnEnd);
    expect(ends).toHaveLength(1);
    expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({
      status: 'succeeded',
      finishReason: output.finishReason,
    });
    expect(await chat.runText('y', { sessionId: output.sessionId })).toMatchObject({
      finishReason: 'stop',
    });
    const said = await saidIn(store, output.sessionId);
    expect(said[0]).toBe('user: x');
    expect(said.slice(-2)).toEqual(['user: y', 'model: ab']);
    await one.close();
    await two.close();
  });
  expect([...seen].toSorted()).toEqual(['aborted', 'stop']);
});

test('S108 S109 detach against finish: every input is answered once, in its order', async () => {
  const seen = new Set<number>();
  await race(async ({ scheduler, store, app }) => {
    const one = app('one');
    const chat = one.defineAgent({
      name: 'chat',
      model: scheduledModel(scheduler, 'model', ['ok']),
    });
    const connection: AgentConnection = chat.streamBidi() as unknown as AgentConnection;
    await connection.sendText('a');
    await connection.sendText('b');
    await aWhile(scheduler, 30);
    const isLast = scheduler.choose(2) === 0;
    const output = await connection.detach(isLast ? say('c') : undefined);
    expect(output.finishReason).toBe('detached');
    const ended = await chat.wait(must(output.snapshotId));
    const before = output.snapshotIds?.length ?? 0;
    seen.add(before);
    expect(ended).toMatchObject({ status: 'succeeded', event: 'detach' });
    expect(ended.parentId).toBe(output.snapshotIds?.at(-1));
    const inputs = ['a', 'b', ...(isLast ? ['c'] : [])];
    expect(await saidIn(store, output.sessionId)).toEqual(
      inputs.flatMap((text) => [`user: ${text}`, 'model: ok']),
    );
    expect(ended.turnIndex).toBe(inputs.length - 1);
    const { items } = must(await store.timeline?.listSnapshots(scope, output.sessionId));
    expect(items.map(({ status }) => status)).toEqual(Array(before + 1).fill('succeeded'));
    await one.close();
  });
  expect(seen.size).toBeGreaterThan(1);
});

test('S38 S108 detach against the end of the connection: it goes on in the background, or is refused', async () => {
  const seen = new Set<string>();
  await race(async ({ scheduler, store, app }) => {
    const one = app('one');
    const chat = one.defineAgent({
      name: 'chat',
      model: scheduledModel(scheduler, 'model', ['ok']),
    });
    const connection = chat.streamBidi();
    await connection.sendText('a');
    connection.close();
    await aWhile(scheduler, 15);
    const detached = await connection.detach().catch((error: unknown) => {
      expect(error).toMatchObject({ status: 'FAILED_PRECONDITION' });
      return undefined;
    });
    const output = await connection.output();
    expect(output.finishReason).toBe(detached === undefined ? 'stop' : 'detached');
    seen.add(must(output.finishReason));
    if (detached !== undefined) {
      expect(await chat.wait(must(detached.snapshotId))).toMatchObject({ status: 'succeeded' });
    }
    expect(await saidIn(store, output.sessionId)).toEqual(['user: a', 'model: ok']);
    await one.close();
  });
  expect(seen.size).toBe(2);
});

test('S117 S118 S122 takeover against zombie: one answer, and the zombie writes nothing', async () => {
  const seen = new Set<string>();
  const play = async ({ scheduler, store, app, errors }: Stage): Promise<void> => {
    const [one, two] = [app('one'), app('two')];
    const zombie = one.defineAgent({
      name: 'chat',
      model: scheduledModel(scheduler, 'one', ['from ', 'one '], { counted: true }),
    });
    const detached = scheduler.choose(2) === 0;
    const turn = detached
      ? zombie.run({ ...say('x'), detach: true }, { sessionId: 's' })
      : zombie.run(say('x'), { sessionId: 's', accept: true });
    const settled = turn.then(
      (output) => output,
      () => undefined,
    );
    if (detached) await settled;
    await aWhile(scheduler, 30);
    scheduler.freeze('one');
    const heir = two.defineAgent({
      name: 'chat',
      model: scheduledModel(scheduler, 'two', ['from ', 'two '], { counted: true }),
    });
    await scheduler.sleep(claimTtl * (1 + scheduler.choose(3)));
    scheduler.thaw('one');
    const output = await settled;
    const runs = await store.runs?.listRuns();
    for (const { runId } of runs ?? []) await heir.wait(runId);
    const said = await saidIn(store, 's');
    expect(said).toEqual(['user: x', expect.stringMatching(/^model: from (one|two) \d$/)]);
    seen.add(must(said[1]));
    const { items } = must(
      await store.timeline?.listSnapshots(scope, 's', { includeOrphaned: true }),
    );
    expect(items.map(({ status }) => status)).toEqual(['succeeded']);
    const events = await all(heir.watch(must(items[0]).snapshotId));
    const ids = events.flatMap((event) => (event.type === 'chunk' ? [event.id] : []));
    expect(new Set(ids).size).toBe(ids.length);
    if (!detached) {
      // Its caller is told the truth: the answer that was saved, whoever gave it.
      expect(output).toMatchObject({
        finishReason: 'stop',
        snapshotId: items[0]?.snapshotId,
      });
      expect(
        `model: ${must(output?.message)
          .content.map((part) => 'text' in part && part.text)
          .join('')}`,
      ).toBe(said[1]);
    }
    expect(events.at(-1)).toMatchObject({ type: 'end', snapshot: { status: 'succeeded' } });
    await one.close();
    await two.close();
    expect(errors).toEqual([]);
  };
  await race(play, { ttl: claimTtl });
  // By the zombie itself, by another process, and by the process of the zombie, which takes its own run over.
  expect([...seen].some((text) => text.startsWith('model: from one'))).toBe(true);
  expect([...seen].some((text) => text.startsWith('model: from two'))).toBe(true);
});

test('S115 S117 S119 S121 takeover against zombie with tools: a watcher sees one story, an effect has one key', async () => {
  const attempts = new Set<string>();
  const play = async ({ scheduler, store, app, errors }: Stage): Promise<void> => {
    const keys = new Map<string, number>();
    const define = (each: App, who: string) => {
      const pay = each.defineTool(
        { name: 'pay', description: 'Pays.' },
        async (_, { idempotencyKey }) => {
          await scheduler.pause(who);
          keys.set(idempotencyKey, (keys.get(idempotencyKey) ?? 0) + 1);
          return 'paid';
        },
      );
      const model = each.defineModel(
        { name: 'model' },
        async ({ messages }, { stream, signal }) => {
          await scheduler.pause(who);
          const rounds = messages.filter(({ role }) => role === 'tool').length;
          const content =
            rounds < 2
              ? [{ toolRequest: { name: 'pay', ref: `${who}${rounds}`, input: {} } }]
              : [{ text: 'a' }, { text: 'b' }];
          for (const part of content) {
            await scheduler.pause(who);
            signal.throwIfAborted();
            await stream({ content: [part] });
          }
          return { message: { role: 'model', content }, finishReason: 'stop' };
        },
      );
      return each.defineAgent({ name: 'chat', model, tools: [pay] });
    };
    const [one, two] = [app('one'), app('two')];
    const zombie = define(one, 'one');
    const { snapshotId = '', sessionId } = await zombie.run({ ...say('x'), detach: true });
    const heir = define(two, 'two');
    const stories = [zombie, heir, heir].map(async (agent, at) => {
      if (at === 2) await aWhile(scheduler, 60);
      return await all(agent.watch(snapshotId));
    });
    await aWhile(scheduler, 60);
    scheduler.freeze('one');
    await scheduler.sleep(claimTtl * (1 + scheduler.choose(2)));
    scheduler.thaw('one');
    await heir.wait(snapshotId);
    expect(await saidIn(store, sessionId)).toEqual([
      'user: x',
      'model: [pay?]',
      'tool: [pay!]',
      'model: [pay?]',
      'tool: [pay!]',
      'model: ab',
    ]);
    // However often it was tried, there are two effects.
    expect(keys.size).toBe(2);
    const whole = await all(heir.watch(snapshotId));
    for (const story of [...(await Promise.all(stories)), whole]) {
      const ids = story.flatMap((event) => (event.type === 'chunk' ? [event.id] : []));
      const order = ids.map((id) => id.split('.').map(Number));
      const sorted = order.toSorted(([a = 0, m = 0], [b = 0, n = 0]) => a - b || m - n);
      expect(order).toEqual(sorted);
      expect(new Set(ids).size).toBe(ids.length);
      const begun = story.findLastIndex(({ type }) => type === 'reset') + 1;
      const texts = story
        .slice(begun)
        .flatMap((event) =>
          event.type === 'chunk' && event.chunk.modelChunk?.role === 'model'
            ? event.chunk.modelChunk.content.map((part) => ('text' in part ? part.text : ''))
            : [],
        );
      expect(texts.join('')).toBe('ab');
      expect(story.at(-1)).toMatchObject({ type: 'end', snapshot: { status: 'succeeded' } });
      attempts.add(must(ids.at(-1)?.split('.')[0]));
    }
    await one.close();
    await two.close();
    expect(errors).toEqual([]);
  };
  await race(play, { ttl: claimTtl });
  expect(attempts.size).toBeGreaterThan(1);
});

test('S106 S91 resume against resume: it is paid once', async () => {
  await race(async ({ scheduler, store, app }) => {
    let paid = 0;
    const apps = ['one', 'two', 'three'].map((who) => {
      const each = app(who);
      const pay = each.defineTool(
        { name: 'pay', description: 'Pays.' },
        async (_, { resumed, interrupt }) => {
          if (resumed === undefined) interrupt();
          await scheduler.pause(who);
          return ++paid;
        },
      );
      let calls = 0;
      const model = each.defineModel({ name: 'model' }, async ({ messages }) => {
        await scheduler.pause(who);
        const asked = messages.some(({ role }) => role === 'tool');
        calls++;
        return {
          message: {
            role: 'model',
            content: asked
              ? [{ text: 'done' }]
              : [{ toolRequest: { name: 'pay', ref: 'r', input: {} } }],
          },
          finishReason: 'stop',
        };
      });
      return {
        each,
        calls: () => calls,
        chat: each.defineAgent({ name: 'chat', model, tools: [pay] }),
      };
    });
    const { snapshotId = '', sessionId } = await must(apps[0]).chat.runText('pay');
    const resume = { restart: [{ toolRequest: { name: 'pay', ref: 'r', input: {} } }] };
    const results = await Promise.all(
      apps.map(async ({ chat }, at) => {
        await aWhile(scheduler, 15);
        const init = at % 2 === 0 ? { snapshotId } : { sessionId };
        return await chat.run({ resume }, init).then(
          ({ finishReason }) => finishReason,
          (error: { status: string }) => error.status,
        );
      }),
    );
    expect(results.filter((result) => result === 'stop')).toHaveLength(1);
    for (const result of results)
      expect(['stop', 'ABORTED', 'FAILED_PRECONDITION']).toContain(result);
    expect(paid).toBe(1);
    expect(await saidIn(store, sessionId)).toEqual([
      'user: pay',
      'model: [pay?]',
      'tool: [pay!]',
      'model: done',
    ]);
    for (const { each } of apps) await each.close();
  });
});

for (const concurrency of ['reject', 'wait', 'fork'] as const) {
  test(`S91 S92 S93 turns at once on one session, with ${concurrency}: none is lost, none is mixed`, async () => {
    await race(async ({ scheduler, store, app, errors }) => {
      const apps = ['one', 'two', 'three'].map((who) => {
        const each = app(who);
        const model = scheduledModel(scheduler, who, ['re ', who]);
        return { who, each, chat: each.defineAgent({ name: 'chat', model, concurrency }) };
      });
      const before = await must(apps[0]).chat.runText('start', { sessionId: 's' });
      const results = await Promise.all(
        apps.map(async ({ who, chat }, at) => {
          await aWhile(scheduler, 12);
          const init = at === 2 ? { snapshotId: must(before.snapshotId) } : { sessionId: 's' };
          return await chat.runText(who, init).then(
            ({ sessionId, finishReason, snapshotId }) => ({
              who,
              sessionId,
              finishReason,
              snapshotId,
            }),
            (error: { status: string }) => ({ who, error: error.status }),
          );
        }),
      );
      const done = results.filter((result) => 'sessionId' in result);
      for (const result of results) {
        if ('error' in result) expect([concurrency, result.error]).toEqual(['reject', 'ABORTED']);
        else expect(result.finishReason).toBe('stop');
      }
      expect(done.length).toBeGreaterThanOrEqual(concurrency === 'reject' ? 1 : 3);
      // Every turn that was accepted is a snapshot with its own question and its own answer at the end.
      for (const result of done) {
        const { who, sessionId, snapshotId } = result;
        const snapshot = must(await store.getSnapshot(scope, { snapshotId: must(snapshotId) }));
        const said = told(snapshot.state?.messages);
        expect(snapshot.sessionId).toBe(sessionId);
        expect(said.slice(0, 2)).toEqual(['user: start', 'model: re one']);
        expect(said.slice(-2)).toEqual([`user: ${who}`, `model: re ${who}`]);
        expect(said.length % 2).toBe(0);
      }
      const { items } = must(
        await store.timeline?.listSnapshots(scope, 's', { includeOrphaned: true }),
      );
      const inSession = done.filter(({ sessionId }) => sessionId === 's');
      expect(items).toHaveLength(1 + inSession.length);
      expect(items.map(({ index }) => index)).toEqual(items.map((_, at) => at));
      if (concurrency !== 'fork') expect(inSession).toHaveLength(done.length);
      for (const { each } of apps) await each.close();
      expect(errors).toEqual([]);
    });
  });
}
