import { expect, test } from 'vitest';
import { on, onChange } from '../../src/session/policy.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { modelSays, must, openApp, refused, told } from './support/kit.ts';

const answers = scriptedModel({ patterns: [], otherwise: 'ok' });

test('S66 a policy is asked with event, states, index, turn index and opportunity', async () => {
  await using app = openApp();
  const chances: unknown[] = [];
  const agent = app.defineCustomAgent(
    {
      name: 'custom',
      snapshot: ({ event, state, prevState, index, turnIndex, eventIndex, changed }) => {
        chances.push({
          event,
          now: told(state.messages).length,
          before: prevState && told(prevState.messages).length,
          index,
          turnIndex,
          eventIndex,
          changed,
        });
        return turnIndex !== 1;
      },
    },
    async (session) => {
      await session.run(() => {
        session.addMessages(modelSays('ok'));
      });
      session.setCustom('end');
    },
  );
  const connection = agent.streamBidi();
  for (const text of ['a', 'b', 'c']) await connection.sendText(text);
  const { snapshotIds, sessionId } = await connection.output();
  expect(chances).toEqual([
    {
      event: 'turnEnd',
      now: 2,
      before: undefined,
      index: 0,
      turnIndex: 0,
      eventIndex: 0,
      changed: true,
    },
    { event: 'turnEnd', now: 4, before: 2, index: 1, turnIndex: 1, eventIndex: 1, changed: true },
    { event: 'turnEnd', now: 6, before: 2, index: 1, turnIndex: 2, eventIndex: 2, changed: true },
    {
      event: 'invocationEnd',
      now: 6,
      before: 6,
      index: 2,
      turnIndex: 2,
      eventIndex: 2,
      changed: true,
    },
  ]);
  expect(snapshotIds).toHaveLength(3);
  const { items } = await agent.listSnapshots(sessionId);
  expect(items.map(({ index, turnIndex }) => [index, turnIndex])).toEqual([
    [0, 0],
    [1, 2],
    [2, 2],
  ]);
  expect(items[1]?.parentId).toBe(items[0]?.snapshotId);
});

test('S66 S70 the previous state is that of the last snapshot, also over invocations and processes', async () => {
  const store = memoryStore();
  const seen: (number | undefined)[] = [];
  const define = (app: ReturnType<typeof openApp>) =>
    app.defineAgent({
      name: 'chat',
      model: answers,
      snapshot: ({ event, state, prevState }) => {
        if (event !== 'turnEnd') return false;
        const [now = 0, before] = [state.messages?.length, prevState?.messages?.length];
        seen.push(before);
        return before === undefined || now - before >= 6;
      },
    });
  await using app = openApp({ store });
  const chat = define(app);
  for (let n = 0; n < 5; n++) await chat.runText(`${n}`, { sessionId: 's' });
  await using again = openApp({ store });
  const later = define(again);
  for (let n = 5; n < 8; n++) await later.runText(`${n}`, { sessionId: 's' });
  expect(seen).toEqual([undefined, 2, 2, 2, 8, 8, 8, 14]);
  const { items } = await later.listSnapshots('s');
  expect(items.map(({ turnIndex }) => turnIndex)).toEqual([0, 3, 6]);
  expect((await later.getSession('s'))?.turnCount).toBe(8);
});

test('S66 on and onChange choose by event, and by whether something changed', async () => {
  await using app = openApp();
  const events = async (snapshot: ReturnType<typeof on>, name: string): Promise<string[]> => {
    const agent = app.defineCustomAgent({ name, snapshot }, async (session) => {
      await session.run(() => {});
      session.setCustom('end');
    });
    const { sessionId } = await agent.runText('a');
    return (await agent.listSnapshots(sessionId)).items.map(({ event }) => event);
  };
  expect(await events(on('invocationEnd'), 'a')).toEqual(['invocationEnd']);
  expect(await events(on('turnEnd'), 'b')).toEqual(['turnEnd']);
  expect(await events(onChange(), 'c')).toEqual(['turnEnd', 'invocationEnd']);
  expect(await events(onChange('turnEnd'), 'd')).toEqual(['turnEnd']);
});

test('S69 an event whose state equals the last snapshot’s makes no new one', async () => {
  await using app = openApp();
  const quiet = app.defineCustomAgent({ name: 'quiet', snapshot: 'always' }, (session) =>
    session.run(() => {
      // As if nothing had been said.
      session.setMessages(session.messages.slice(0, -1));
    }),
  );
  const talk = app.defineCustomAgent({ name: 'talk', snapshot: 'always' }, (session) =>
    session.run(() => {}),
  );
  const first = await talk.runText('a');
  expect(first.snapshotIds).toHaveLength(1);
  const { sessionId } = await quiet.runText('a');
  const { items } = await quiet.listSnapshots(sessionId);
  const again = await quiet.runText('b', { sessionId });
  expect(again.snapshotId).toBe(items[0]?.snapshotId);
  expect(again.snapshotIds).toBeUndefined();
  expect((await quiet.listSnapshots(sessionId)).items).toHaveLength(1);
});

test('S70 the latest state is saved whatever the policy says, and a snapshot hangs on the last listed one', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    model: answers,
    snapshot: ({ turnIndex }) => turnIndex % 3 === 0,
  });
  const ids = [];
  for (let n = 0; n < 5; n++) ids.push((await chat.runText(`${n}`, { sessionId: 's' })).snapshotId);
  const { items } = await chat.listSnapshots('s');
  expect(items.map(({ turnIndex }) => turnIndex)).toEqual([0, 3]);
  expect(items[1]?.parentId).toBe(items[0]?.snapshotId);
  const { state, turnCount } = must(await chat.getSession('s'));
  expect([state?.messages?.length, turnCount]).toEqual([10, 5]);
  // Restoring an earlier one lists what would otherwise be lost.
  await chat.restore(must(items[0]).snapshotId);
  const all = await chat.listSnapshots('s', { includeOrphaned: true });
  expect(all.items.map(({ turnIndex, orphaned }) => [turnIndex, orphaned])).toEqual([
    [0, false],
    [3, true],
    [4, true],
  ]);
  // A turn without a snapshot names none: going on from the last one would lose it.
  expect(ids).toEqual([
    items[0]?.snapshotId,
    undefined,
    undefined,
    items[1]?.snapshotId,
    undefined,
  ]);
});

test('S74 a policy that throws fails the turn, and the session can be used', async () => {
  await using app = openApp();
  let broken = true;
  const chat = app.defineAgent({
    name: 'chat',
    model: answers,
    snapshot: () => {
      if (broken) throw new Error('policy');
      return true;
    },
  });
  const failed = await chat.runText('a', { sessionId: 's', throwOnError: false });
  expect(failed).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
  expect(failed.snapshotId).toBeUndefined();
  broken = false;
  expect(await chat.runText('b', { sessionId: 's' })).toMatchObject({ finishReason: 'stop' });
  expect((await chat.getSession('s'))?.state?.messages).toHaveLength(2);
});

test('S64 a state that no longer matches its hash is DATA_LOSS', async () => {
  const { getSnapshot, saveSnapshot } = memoryStore();
  let forge = false;
  const store = {
    saveSnapshot,
    getSnapshot: async (...args: Parameters<typeof getSnapshot>) => {
      const snapshot = await getSnapshot(...args);
      if (!forge || snapshot === undefined) return snapshot;
      return { ...snapshot, state: { ...snapshot.state, custom: 'forged' } };
    },
  };
  await using app = openApp({ store });
  const chat = app.defineAgent({ name: 'chat', model: answers });
  const { sessionId, snapshotId = '' } = await chat.runText('a');
  forge = true;
  await refused(chat.runText('b', { sessionId }), 'DATA_LOSS');
  await refused(chat.runText('b', { snapshotId }), 'DATA_LOSS');
  forge = false;
  expect(await chat.runText('b', { sessionId })).toMatchObject({ finishReason: 'stop' });
});

test('S72 an index is never used twice, whatever fails in between', async () => {
  await using app = openApp();
  const model = scriptedModel(['a', { error: new Error('x') }, 'b', 'c']);
  const chat = app.defineAgent({ name: 'chat', model });
  const first = await chat.runText('1', { sessionId: 's' });
  await chat.runText('2', { sessionId: 's', throwOnError: false });
  await chat.runText('3', { sessionId: 's' });
  await chat.runText('4', { snapshotId: must(first.snapshotId) });
  const { items } = await chat.listSnapshots('s', { includeOrphaned: true });
  expect(items.map(({ index, turnIndex, status }) => [index, turnIndex, status])).toEqual([
    [0, 0, 'succeeded'],
    [1, 1, 'failed'],
    [2, 1, 'succeeded'],
    [3, 1, 'succeeded'],
  ]);
});

test('S66 the opportunity of a tool iteration counts within its turn', async () => {
  await using app = openApp();
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 1);
  const call = { toolCalls: [{ name: 'note' }] };
  const model = scriptedModel([call, call, 'done', call, 'done']);
  const chances: unknown[] = [];
  const agent = app.defineAgent({
    name: 'chat',
    model,
    tools: [note],
    snapshot: ({ event, eventIndex }) => {
      chances.push([event, eventIndex]);
      return false;
    },
  });
  await agent.runText('a', { sessionId: 's' });
  await agent.runText('b', { sessionId: 's' });
  expect(chances).toEqual([
    ['toolIterationEnd', 0],
    ['toolIterationEnd', 1],
    ['turnEnd', 0],
    ['invocationEnd', 0],
    ['toolIterationEnd', 0],
    ['turnEnd', 1],
    ['invocationEnd', 1],
  ]);
});
