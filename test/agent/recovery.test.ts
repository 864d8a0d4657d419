import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import { toResume } from '../../src/api/interrupts.ts';
import type { AgentTypes, WatchEvent } from '../../src/api/types.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Middleware } from '../../src/generate/middleware/middleware.ts';
import { toolApproval } from '../../src/generate/middleware/tool-approval.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate } from './support/gate.ts';
import {
  all,
  hasText,
  must,
  openApp,
  refused,
  say,
  type TestApp,
  told,
  until,
} from './support/kit.ts';
import { type MortalStore, mortalStore } from './support/mortal-store.ts';

const claimTtl = 60_000;

/** Two processes on one store; the first one can be cut off. */
function twoProcesses(): {
  first: TestApp;
  second: TestApp;
  line: MortalStore;
  /** What the second one logs as a warning. */
  warnings: string[];
  /** Moves the clock of both past the end of every claim. */
  expire: () => void;
  advance: (ms: number) => void;
} {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const warnings: string[] = [];
  const logger = { info() {}, error() {}, warn: (_: object, text: string) => warnings.push(text) };
  return {
    line,
    warnings,
    first: openApp({ store: line, claimTtl, clock }),
    second: openApp({ store, claimTtl, clock, logger }),
    expire: () => advance(2 * claimTtl),
    advance,
  };
}

/** Resolves when the store has the event of a run that brings this text. */
async function untilStored(store: Store, runId: string, text: string): Promise<void> {
  await eventually(async () => {
    const page = await store.events?.read({ agent: 'chat' }, runId, { limit: 100 });
    expect(JSON.stringify(page?.events)).toContain(`"text":"${text}"`);
  });
}

const texts = <Types extends AgentTypes>(events: readonly WatchEvent<Types>[]): string[] =>
  events.flatMap((event) => {
    if (event.type === 'reset') return [`reset ${event.attempt}`];
    if (event.type === 'end') return [`end ${event.snapshot.status}`];
    const { chunk } = event;
    if (chunk.turnStart) return ['start'];
    if (chunk.turnEnd) return [`turnEnd ${chunk.turnEnd.finishReason}`];
    return (chunk.modelChunk?.content ?? []).map((part) =>
      'text' in part ? part.text : (Object.keys(part)[0] ?? ''),
    );
  });

test('S117 S119 S115 S389 a prompt agent’s run is taken over at its last tool iteration; a watcher sees a reset', async () => {
  const { first, second, line, warnings, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  let noted = 0;
  const define = (app: TestApp, script: ScriptStep[]) => {
    const note = app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
      session?.setCustom({ noted: ++noted });
      return noted;
    });
    const model = scriptedModel(script);
    return { model, chat: app.defineAgent({ name: 'chat', model, tools: [note] }) };
  };
  const { chat } = define(first, [
    { toolCalls: [{ name: 'note' }] },
    { chunks: ['lost'], hang: true },
  ]);
  const { snapshotId = '', sessionId } = await chat.run({ ...say('a'), detach: true });
  await until(chat.watch(snapshotId), (event) => event.type === 'chunk' && hasText(event.chunk));
  const { chat: heir, model } = define(second, ['kept']);
  const seen = all(heir.watch(snapshotId));
  await untilStored(line, snapshotId, 'lost');
  line.cut();
  expire();
  const ended = await heir.wait(snapshotId);
  expect(ended).toMatchObject({ status: 'succeeded', finishReason: 'stop' });
  expect(told(ended.state?.messages)).toEqual([
    'user: a',
    'model: [note?]',
    'tool: [note!]',
    'model: kept',
  ]);
  expect(warnings).toEqual([`run ${snapshotId} of chat is taken over`]);
  expect(ended.state?.custom).toEqual({ noted: 1 });
  expect(noted).toBe(1);
  expect(told(model.requests[0]?.messages)).toEqual(['user: a', 'model: [note?]', 'tool: [note!]']);
  expect(texts(await seen)).toEqual([
    'start',
    'toolRequest',
    'toolResponse',
    'lost',
    'reset 2',
    'kept',
    'turnEnd stop',
    'end succeeded',
  ]);
  await line.heal();
  // The one that was frozen learns that it has lost the run, and has written nothing.
  await eventually(async () => (await first.engine.status()).running === 0);
  expect(told((await heir.getSnapshot({ sessionId }))?.state?.messages).at(-1)).toBe('model: kept');
  expect((await heir.listSnapshots(sessionId)).items).toHaveLength(1);
});

test('S221: a takeover continues the count of tokens and tool calls', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const usage = { totalTokens: 10 };
  const define = (app: TestApp, script: ScriptStep[]) => {
    const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 'noted');
    const model = scriptedModel(script);
    const limits = { session: { tokens: 45, toolCalls: 9 } };
    return { model, chat: app.defineAgent({ name: 'chat', model, tools: [note], limits }) };
  };
  const { chat } = define(first, [
    { text: 'one', usage },
    { text: 'two', usage },
    { toolCalls: [{ name: 'note' }], usage },
    { chunks: ['lost'], hang: true },
  ]);
  const { sessionId } = await chat.runText('a');
  const connection = chat.streamBidi({ sessionId });
  await connection.sendText('b');
  const { snapshotId = '' } = await connection.detach(say('c'));
  await until(
    chat.watch(snapshotId),
    (event) => event.type === 'chunk' && JSON.stringify(event.chunk).includes('lost'),
  );
  line.cut();
  const { chat: heir, model } = define(second, [{ text: 'kept', usage }, 'never']);
  expire();
  const ended = heir.watch(snapshotId);
  const last = await until(
    ended,
    (event) => event.type === 'chunk' && event.chunk.turnEnd !== undefined && event.id > '2',
  );
  expect(last).toMatchObject({ chunk: { turnEnd: { usage: { totalTokens: 20 } } } });
  expect(await heir.wait(snapshotId)).toMatchObject({
    status: 'succeeded',
    usage: { totalTokens: 30 },
  });
  // 40 of 45 are used: one more call fits, and passes the limit.
  expect((await heir.runText('d', { sessionId, throwOnError: false })).error).toMatchObject({
    details: { limit: 'session.tokens', most: 45 },
  });
  expect(model.requests).toHaveLength(2);
  await line.heal();
});

test('S115 a cursor continues behind its event, over a takeover, without gap or repeat', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const chat = first.defineAgent({
    name: 'chat',
    model: scriptedModel([{ chunks: ['a', 'b', 'c'], hang: true }]),
  });
  const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
  await untilStored(line, snapshotId, 'c');
  line.cut();
  const heir = second.defineAgent({ name: 'chat', model: scriptedModel([{ chunks: ['d', 'e'] }]) });
  expire();
  await heir.wait(snapshotId);
  const whole = await all(heir.watch(snapshotId));
  expect(texts(whole).join(' ')).toMatch(
    /^start (a b c|abc) reset 2 start (d e|de) turnEnd stop end succeeded$/,
  );
  // Wherever a reader comes back, it gets what is behind, and nothing else.
  for (const [at, event] of whole.entries()) {
    if (event.type !== 'chunk') continue;
    const rest = await all(heir.watch(snapshotId, { after: event.id }));
    expect(texts(rest)).toEqual(texts(whole.slice(at + 1)));
  }
  const reset = must(whole.find(({ type }) => type === 'reset'));
  if (reset.type !== 'reset') return;
  expect(texts(await all(heir.watch(snapshotId, { after: reset.id })))[0]).toBe('start');
  await refused(all(heir.watch(snapshotId, { after: 'nonsense' })), 'INVALID_ARGUMENT');
  await line.heal();
});

test('S121 a tool that is run again gets the same idempotency key; every other call another one', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const keys: string[] = [];
  const define = (app: TestApp, name: string, hang: boolean) => {
    const pay = app.defineTool(
      { name: 'pay', description: 'Pays.' },
      async (_, { idempotencyKey }) => {
        keys.push(`${name} ${idempotencyKey}`);
        if (hang) await new Promise(() => {});
        return 'paid';
      },
    );
    const model = scriptedModel([
      {
        toolCalls: [
          { name: 'pay', ref: `${name}1` },
          { name: 'pay', ref: `${name}2` },
        ],
      },
      { toolCalls: [{ name: 'pay', ref: `${name}3` }] },
      'done',
    ]);
    return app.defineAgent({ name: 'chat', model, tools: [pay] });
  };
  const chat = define(first, 'first', true);
  const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
  await eventually(() => keys.length === 2);
  line.cut();
  const heir = define(second, 'second', false);
  expire();
  await heir.wait(snapshotId);
  const own = keys.filter((key) => key.startsWith('second')).map((key) => key.split(' ')[1]);
  const before = keys.filter((key) => key.startsWith('first')).map((key) => key.split(' ')[1]);
  expect(own.slice(0, 2)).toEqual(before);
  expect(new Set(own).size).toBe(3);
  await line.heal();
});

test('S121 a tool call keeps its idempotency key when the second attempt takes a steered message before it', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const keys: string[] = [];
  const define = (app: TestApp, hangs: boolean) => {
    const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
    const pay = app.defineTool(
      { name: 'pay', description: 'Pays.' },
      async (_, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        if (hangs) await new Promise(() => {});
        return 'paid';
      },
    );
    const script: ScriptStep[] = [{ toolCalls: [{ name: 'pay' }] }, 'done'];
    const model = scriptedModel(hangs ? [{ toolCalls: [{ name: 'look' }] }, ...script] : script);
    return app.defineAgent({ name: 'chat', model, tools: [look, pay] });
  };
  const chat = define(first, true);
  const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
  await eventually(() => keys.length === 1);
  line.cut();
  const heir = define(second, false);
  await heir.steer(snapshotId, 'And hurry.');
  expire();
  const { state } = await heir.wait(snapshotId);
  expect(told(state?.messages).slice(0, 5)).toEqual([
    'user: x',
    'model: [look?]',
    'tool: [look!]',
    'user: And hurry.',
    'model: [pay?]',
  ]);
  expect(keys[1]).toBe(keys[0]);
  await line.heal();
});

test('S590 S119 a sub-agent that was approved and has answered is not asked again after a takeover', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  let answers = 0;
  const define = (app: TestApp, { hang }: { readonly hang: boolean }) => {
    const helping = scriptedModel(['Helped.']);
    const helper = app.defineAgent({ name: 'helper', model: helping });
    const call = { toolCalls: [{ name: 'helper', ref: 'h', input: { message: 'go' } }] };
    const model = scriptedModel(hang ? [call] : ['done']);
    const afterwards: Middleware = {
      name: 'afterwards',
      async tool(step, next) {
        const output = await next(step);
        answers++;
        if (hang) await new Promise(() => {});
        return output;
      },
    };
    const use = [afterwards, toolApproval(['helper'])];
    const chat = app.defineAgent({ name: 'chat', model, tools: [agentTool(helper)], use });
    return { chat, model, helping };
  };
  const { chat } = define(first, { hang: true });
  const { interrupts, sessionId } = await chat.run('x');
  const resume = toResume(interrupts.map((request) => request.approve()));
  const { snapshotId = '' } = await chat.run({ resume, detach: true }, { sessionId });
  await eventually(() => answers === 1);
  line.cut();
  const heir = define(second, { hang: false });
  expire();
  const ended = await heir.chat.wait(snapshotId);
  await line.heal();
  expect(ended).toMatchObject({ status: 'succeeded' });
  expect(heir.helping.requests).toEqual([]);
  expect(JSON.stringify(heir.model.requests[0]?.messages)).toContain('Helped.');
});

test('S120 S611 a custom handler’s turn starts over, and its steps give what was recorded', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const log: string[] = [];
  const define = (app: TestApp, name: string, hang: boolean) =>
    app.defineCustomAgent({ name: 'custom' }, (session) =>
      session.run(async (input) => {
        log.push(`${name} sees ${told(session.messages).length}`);
        session.setCustom(`half by ${name}`);
        const one = await session.step('one', () => {
          log.push(`${name} does one`);
          return { by: name };
        });
        await refused(
          session.step('one', () => expect.fail('done already')),
          'FAILED_PRECONDITION',
        );
        const nothing = await session.step('nothing', () => {
          log.push(`${name} does nothing`);
        });
        expect(nothing).toBeUndefined();
        const text = JSON.stringify(input.message?.content);
        if (hang && text.includes('second')) await new Promise(() => {});
        session.addMessages({ role: 'model', content: [{ text: `one by ${one.by}` }] });
      }),
    );
  const agent = define(first, 'first', true);
  const connection = agent.streamBidi();
  await connection.sendText('first input');
  await connection.sendText('second input');
  const { snapshotId = '' } = await connection.detach(say('third input'));
  await eventually(() => log.length === 6);
  line.cut();
  const heir = define(second, 'second', false);
  expire();
  const ended = await heir.wait(snapshotId);
  expect(log.slice(6)).toEqual([
    'second sees 3',
    'second sees 5',
    'second does one',
    'second does nothing',
  ]);
  expect(told(ended.state?.messages)).toEqual([
    'user: first input',
    'model: one by first',
    'user: second input',
    'model: one by first',
    'user: third input',
    'model: one by second',
  ]);
  expect(ended).toMatchObject({
    status: 'succeeded',
    turnIndex: 2,
    state: { custom: 'half by second' },
  });
  await line.heal();
});

test('S611 several steps of a turn can be retried together; a loop over one key is refused', async () => {
  for (const storeless of [false, true]) {
    await using app = openApp({ storeless });
    const log: string[] = [];
    const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
      session.run(async () => {
        let failures = 2;
        const work = (key: string) =>
          session.step(key, () => {
            log.push(key);
            if (key === 'pay' && failures-- > 0) throw new Error('on purpose');
            return `${key} done`;
          });
        const block = async () => [await work('order'), await work('pay')];
        const again = () => refused(work('order'), 'FAILED_PRECONDITION');
        await work('order');
        expect((await again()).message).toContain('in a loop, put the index or an id into it');
        const retried = work('pay')
          .catch(() => block())
          .catch(() => block());
        expect(await retried).toEqual(['order done', 'pay done']);
        // The failures of a key come before its success: only a loop uses it again.
        await refused(work('pay'), 'FAILED_PRECONDITION');
      }),
    );
    const connection = agent.streamBidi();
    await connection.sendText('a');
    await connection.sendText('b');
    expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
    const once = ['order', 'pay', 'pay', 'pay'];
    expect(log).toEqual([...once, ...once]);
  }
});

test('S120 also where the turn had saved a snapshot within', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const gate = createGate();
  const define = (app: TestApp, hang: boolean) => {
    const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 'noted');
    const model = scriptedModel([
      { toolCalls: [{ name: 'note' }] },
      hang ? gate.giving('never') : 'done',
    ]);
    return app.defineCustomAgent({ name: 'custom', snapshot: 'always' }, (session) =>
      session.run(async (_input, { signal }) => {
        session.addMessages({
          role: 'model',
          content: [{ text: `turn sees ${session.messages.length}` }],
        });
        session.addMessages({ role: 'user', content: [{ text: 'go' }] });
        const { messages } = await app.generate({
          model,
          messages: session.messages,
          tools: [note],
          signal,
        });
        session.addMessages(...messages);
      }),
    );
  };
  const agent = define(first, true);
  void agent.run(say('a'), { sessionId: 's', accept: true }).catch(() => {});
  await gate.reached;
  const { items } = await agent.listSnapshots('s');
  expect(items.map(({ event }) => event)).toEqual(['toolIterationEnd']);
  line.cut();
  const heir = define(second, false);
  expire();
  await eventually(async () => (await heir.getSession('s'))?.running === undefined);
  const { state } = must(await heir.getSession('s'));
  expect(told(state?.messages)).toEqual([
    'user: a',
    'model: turn sees 1',
    'user: go',
    'model: [note?]',
    'tool: [note!]',
    'model: done',
  ]);
  await line.heal();
});

test('S118 S122 S217: a turn that a server accepted is taken over; its first process writes nothing, and tells its caller what came of it', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const gate = createGate();
  const chat = first.defineAgent({
    name: 'chat',
    model: scriptedModel([gate.giving('from the dead')]),
  });
  const turn = chat.stream(say('a'), { accept: true, sessionId: 's' });
  const chunks = all(turn.stream);
  await gate.reached;
  line.cut();
  const heir = second.defineAgent({ name: 'chat', model: scriptedModel(['from the living']) });
  expire();
  await eventually(async () => (await heir.getSession('s'))?.turnCount === 1);
  gate.open();
  await line.heal();
  const output = await turn.output;
  const { items } = await heir.listSnapshots('s');
  expect(output).toMatchObject({
    finishReason: 'stop',
    message: { content: [{ text: 'from the living' }] },
    snapshotId: items[0]?.snapshotId,
  });
  expect(output.error).toBeUndefined();
  const seen = await chunks;
  const ends = seen.flatMap(({ turnEnd }) => turnEnd ?? []);
  expect(ends).toMatchObject([{ finishReason: 'stop', snapshotId: items[0]?.snapshotId }]);
  expect(told((await heir.getSession('s'))?.state?.messages)).toEqual([
    'user: a',
    'model: from the living',
  ]);
  expect((await heir.listSnapshots('s')).items).toHaveLength(1);
});

test('S118 S217: a caller gets the output of a turn that another worker took over, however long it takes', async () => {
  const { first, second, line, expire, advance } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const [begun, gate] = [createGate(), createGate()];
  const chat = first.defineAgent({
    name: 'chat',
    model: scriptedModel([begun.giving('from the dead')]),
  });
  const running = chat.runText('a', { accept: true, sessionId: 's' });
  await begun.reached;
  line.cut();
  second.defineAgent({ name: 'chat', model: scriptedModel([gate.giving('from the living')]) });
  expire();
  await gate.reached;
  await line.heal();
  // Longer than a handler may take to return after a stop.
  for (let times = 0; times < 10; times++) {
    advance(3000);
    await systemClock.sleep(20);
  }
  gate.open();
  expect(await running).toMatchObject({ finishReason: 'stop', text: 'from the living' });
  begun.open();
});

test('S122 S73 S43 S116 a turn of a caller that died reads expired, and the session continues from before', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const model = scriptedModel(['one', { chunks: ['half'], hang: true }]);
  const chat = first.defineAgent({ name: 'chat', model });
  const before = await chat.runText('a', { sessionId: 's' });
  const connection = chat.streamBidi({ sessionId: 's' });
  await connection.sendText('b');
  const { turnStart } = await until(connection.receive(), (chunk) => chunk.turnStart !== undefined);
  const snapshotId = must(turnStart?.snapshotId);
  line.cut();
  const heir = second.defineAgent({ name: 'chat', model: scriptedModel(['three']) });
  expect(await heir.getSnapshot({ snapshotId })).toMatchObject({ status: 'pending' });
  const watched = all(heir.watch(snapshotId));
  expire();
  expect(await heir.wait(snapshotId)).toMatchObject({ status: 'expired' });
  expect(texts(await watched)).toEqual(['end expired']);
  expect(texts(await all(heir.watch(snapshotId)))).toEqual(['end expired']);
  await refused(heir.runText('x', { snapshotId }), 'FAILED_PRECONDITION');
  const after = await heir.runText('c', { sessionId: 's' });
  expect(told((await heir.getSession('s'))?.state?.messages)).toEqual([
    'user: a',
    'model: one',
    'user: c',
    'model: three',
  ]);
  expect(await heir.getSnapshot({ snapshotId: must(after.snapshotId) })).toMatchObject({
    parentId: before.snapshotId,
  });
  expect(await heir.getSnapshot({ snapshotId })).toMatchObject({ status: 'expired' });
  connection.abort();
  await line.heal();
  expect(await connection.output()).toMatchObject({ finishReason: 'failed' });
  expect(await heir.getSession('s')).toMatchObject({ headId: after.snapshotId, turnCount: 2 });
});

test('S73 S113 a terminal status is final', async () => {
  await using app = openApp();
  const model = scriptedModel(['one', { error: new Error('x') }, { hang: true }]);
  const chat = app.defineAgent({ name: 'chat', model });
  const { sessionId } = await chat.runText('a');
  await chat.runText('b', { sessionId, throwOnError: false });
  const detached = await chat.run({ ...say('c'), detach: true }, { sessionId });
  await chat.abort(must(detached.snapshotId));
  const { items } = await chat.listSnapshots(sessionId, { includeOrphaned: true });
  expect(items.map(({ status }) => status)).toEqual(['succeeded', 'failed', 'aborted']);
  for (const { snapshotId, status } of items) {
    expect(await chat.abort(snapshotId)).toBe(status);
    await app.store?.saveSnapshot({ agent: 'chat' }, snapshotId, (current) => ({
      ...must(current),
      status: 'pending',
    }));
    expect(await chat.getSnapshot({ snapshotId })).toMatchObject({ status });
  }
});

test('S118 a turn whose inbox cannot be read at its takeover is taken over again', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const runs = must(store.runs);
  const line = mortalStore(store);
  let isAway = true;
  const flaky: Store = {
    ...store,
    runs: {
      ...runs,
      async readInbox(ref) {
        const inbox = await must(runs.readInbox)(ref);
        if (!isAway) return inbox;
        isAway = false;
        throw new WaymarkError('UNAVAILABLE', 'The connection broke.');
      },
    },
  };
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store: flaky, claimTtl, clock });
  await using third = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const define = (app: TestApp, answer: ScriptStep) =>
    app.defineAgent({ name: 'chat', model: scriptedModel([answer]), concurrency: 'wait' });
  const chat = define(first, gate.giving('x'));
  const turn = chat.streamText('a', { accept: true, sessionId: 's' });
  const { turnStart } = await until(turn.stream, (chunk) => chunk.turnStart !== undefined);
  const snapshotId = must(turnStart?.snapshotId);
  await gate.reached;
  line.cut();
  const heir = define(second, 'done');
  advance(2 * claimTtl);
  await second.engine.recover();
  await eventually(() => expect(second.errors).toHaveLength(1));
  expect(isAway).toBe(false);
  expect(second.errors[0]).toMatchObject({ status: 'UNAVAILABLE' });
  // No process holds it any more, and the one that tried follows it in the store.
  define(third, 'done');
  const watched = all(heir.watch(snapshotId));
  advance(2 * claimTtl);
  await third.engine.recover();
  expect(texts(await watched).at(-1)).toBe('end succeeded');
  expect((await heir.wait(snapshotId)).status).toBe('succeeded');
  expect(told((await heir.getSession('s'))?.state?.messages)).toEqual(['user: a', 'model: done']);
  gate.open();
  await line.heal();
  await turn.output.catch(() => {});
});

test('S118 recover() finds a run that has expired while an earlier look was under way', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const runs = must(store.runs);
  const looked = createGate();
  let looks = 0;
  const slow: Store = {
    ...store,
    runs: {
      ...runs,
      async takeOver(request) {
        const taken = await runs.takeOver(request);
        if (looks++ === 0) await looked.wait();
        return taken;
      },
    },
  };
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  const gate = createGate();
  const chat = first.defineAgent({ name: 'chat', model: scriptedModel([gate.giving('x')]) });
  const { snapshotId = '' } = await chat.run({ ...say('a'), detach: true });
  await gate.reached;
  line.cut();
  await using second = openApp({ store: slow, claimTtl, clock });
  const heir = second.defineAgent({ name: 'chat', model: scriptedModel(['done']) });
  await looked.reached;
  advance(2 * claimTtl);
  const found = second.engine.recover();
  looked.open();
  expect(await found).toBe(1);
  expect((await heir.wait(snapshotId)).status).toBe('succeeded');
  gate.open();
  await line.heal();
});

test('S122 S55 an accepted turn that was to be stopped when its process died keeps its message', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const gate = createGate();
  const chat = first.defineAgent({ name: 'chat', model: scriptedModel([gate.giving('x')]) });
  const connection = chat.streamBidi({ accept: true, sessionId: 's' });
  await connection.sendText('a');
  const { turnStart } = await until(connection.receive(), (chunk) => chunk.turnStart !== undefined);
  const snapshotId = must(turnStart?.snapshotId);
  await gate.reached;
  line.cut();
  const model = scriptedModel(['after']);
  const heir = second.defineAgent({ name: 'chat', model });
  expect(await heir.abort(snapshotId)).toBe('pending');
  expire();
  expect(await heir.wait(snapshotId)).toMatchObject({
    status: 'succeeded',
    finishReason: 'aborted',
  });
  expect(told((await heir.getSession('s'))?.state?.messages)).toEqual(['user: a']);
  expect(model.requests).toEqual([]);
  gate.open();
  await line.heal();
});

test('S13 S119 a run of an older version is taken over with its state brought up to date', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const old = first.defineAgent({
    name: 'chat',
    model: scriptedModel(['one', { hang: true }, { hang: true }]),
    initialState: { topic: 'a' },
  });
  const runs = [];
  for (const sessionId of ['fits', 'misfits']) {
    if (sessionId === 'fits') await old.runText('x', { sessionId });
    runs.push(await old.run({ ...say('y'), detach: true }, { sessionId }));
  }
  line.cut();
  const state = z.object({ topics: z.array(z.string()) });
  const heir = second.defineAgent({
    name: 'chat',
    model: scriptedModel({ patterns: [], otherwise: 'done' }),
    state,
    initialState: { topics: [] },
    upgradeState: (custom) => ({ topics: [(custom as { topic: string }).topic] }),
  });
  expire();
  const [fits, fresh] = runs.map(({ snapshotId = '' }) => snapshotId);
  expect((await heir.wait(must(fits))).state?.custom).toEqual({ topics: ['a'] });
  expect((await heir.wait(must(fresh))).state?.custom).toEqual({ topics: [] });
  await line.heal();
});

test('S123 the context is kept with the run, and restoreContext rebuilds what is not JSON', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const seen: unknown[] = [];
  const define = (app: TestApp, hang: boolean) =>
    app.defineCustomAgent(
      { name: 'custom', restoreContext: (context) => ({ ...context, rebuilt: true }) },
      (session, { context }) =>
        session.run(async () => {
          seen.push(context);
          if (hang) await new Promise(() => {});
        }),
    );
  const agent = define(first, true);
  const context = { user: 'Ada' };
  const { snapshotId = '' } = await agent.run(
    { ...say('a'), detach: true },
    { context, owner: 'me' },
  );
  await eventually(() => seen.length === 1);
  line.cut();
  const heir = define(second, false);
  expire();
  expect(await heir.wait(snapshotId, { owner: 'me' })).toMatchObject({ status: 'succeeded' });
  expect(seen).toEqual([{ user: 'Ada' }, { user: 'Ada', rebuilt: true }]);
  await line.heal();
});

test('S125 a process that starts again continues its own unfinished runs', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const first = openApp({ store: line, claimTtl, clock });
  const chat = first.defineAgent({ name: 'chat', model: scriptedModel([{ hang: true }]) });
  const runs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => chat.run({ ...say(`${n}`), detach: true })),
  );
  line.cut();
  await using again = openApp({ store, claimTtl, clock });
  const heir = again.defineAgent({
    name: 'chat',
    model: scriptedModel({ patterns: [], otherwise: 'done' }),
  });
  for (const { snapshotId = '' } of runs) {
    // It takes over so many at a time.
    advance(2 * claimTtl);
    expect(await heir.wait(snapshotId)).toMatchObject({ status: 'succeeded' });
  }
  expect(again.errors).toEqual([]);
  await line.heal();
  await first.close({ grace: 0 });
});

test('S168 S119 a process that dies right after a detach within a turn leaves the events before it', async () => {
  const { first, second, line, expire } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const define = (app: TestApp, script: ScriptStep[]) => {
    const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 'noted');
    const model = scriptedModel(script);
    return app.defineAgent({ name: 'chat', model, tools: [note], snapshot: 'always' });
  };
  const chat = define(first, [
    { chunks: ['before'], toolCalls: [{ name: 'note' }] },
    { chunks: ['half'], hang: true },
  ]);
  const connection = chat.streamBidi({ sessionId: 's' });
  await connection.sendText('a');
  await until(connection.receive(), (chunk) => JSON.stringify(chunk).includes('half'));
  const { snapshotId = '' } = await connection.detach();
  line.cut();
  expire();
  const heir = define(second, ['after']);
  await second.engine.recover();
  expect(await heir.wait(snapshotId)).toMatchObject({ status: 'succeeded' });
  const watched = texts(await all(heir.watch(snapshotId)));
  await line.heal();
  expect(watched).toEqual([
    'start',
    'before',
    'toolRequest',
    'toolResponse',
    'half',
    'reset 2',
    'after',
    'turnEnd stop',
    'end succeeded',
  ]);
});

test('S116 S115 S114 what can be seen of an attached turn in this process and in another', async () => {
  const { first, second } = twoProcesses();
  await using _one = first;
  await using _two = second;
  const gate = createGate();
  const model = scriptedModel([gate.giving({ chunks: ['a', 'b'] })]);
  const chat = first.defineAgent({ name: 'chat', model });
  const other = second.defineAgent({ name: 'chat', model });
  const connection = chat.streamBidi();
  await connection.sendText('x');
  const { turnStart } = await until(connection.receive(), (chunk) => chunk.turnStart !== undefined);
  const snapshotId = must(turnStart?.snapshotId);
  const [near, far] = [all(chat.watch(snapshotId)), all(other.watch(snapshotId))];
  const waiting = other.wait(snapshotId);
  gate.open();
  await connection.output();
  expect(texts(await near)).toEqual(['start', 'a', 'b', 'turnEnd stop', 'end succeeded']);
  expect(texts(await far)).toEqual(['end succeeded']);
  expect(await waiting).toMatchObject({ status: 'succeeded' });
  expect(texts(await all(chat.watch(snapshotId)))).toEqual([
    'start',
    'a',
    'b',
    'turnEnd stop',
    'end succeeded',
  ]);
});

test('S114 S115 waiting and watching end with their signal', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([{ hang: true }]) });
  const { snapshotId = '' } = await chat.run({ ...say('a'), detach: true });
  const over = new AbortController();
  const calls = [
    chat.wait(snapshotId, { signal: over.signal }),
    all(chat.watch(snapshotId, { signal: over.signal })),
  ];
  const ended = Promise.allSettled(calls);
  over.abort();
  for (const { status } of await ended) expect(status).toBe('rejected');
  await refused(chat.wait('01890000-0000-7000-8000-00000000000a'), 'NOT_FOUND');
  await chat.abort(snapshotId);
});
