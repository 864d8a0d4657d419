import { expect, test } from 'vitest';
import { z } from 'zod';
import type { ClientStateOptions } from '../../src/agent/contract/spec.ts';
import { hmacSha256 } from '../../src/core/platform.ts';
import type { State } from '../../src/protocol/state.ts';
import { fromPlainState, hashState } from '../../src/session/session-state.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, refused, say, type TestApp } from './support/kit.ts';

const secret = 'known to the server and to no client';
const other = 'the secret that comes after the first';

function define(app: TestApp, clientState: ClientStateOptions) {
  return app.defineAgent({
    name: 'chat',
    store: false,
    clientState,
    model: scriptedModel({ patterns: [], otherwise: 'ok' }),
  });
}

test('S180 a secret that is missing, empty or shorter than 32 bytes is refused at the definition', async () => {
  await using app = openApp();
  const wrong = [undefined, null, '', 'short', 'x'.repeat(31), [], ['x'.repeat(32), 'short'], 32];
  for (const each of wrong) {
    expect(() => define(app, { secret: each as never })).toThrow(
      expect.objectContaining({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('32 bytes'),
      }),
    );
  }
  expect(() => define(app, { secret, maxAge: 0 })).toThrow(/maxAge/);
  // Bytes count, not characters.
  expect(() => define(app, { secret: 'é'.repeat(16) })).not.toThrow();
});

test('S180 the first secret signs, and states signed with any of them are accepted', async () => {
  const run = async (secrets: string | readonly string[], state?: State): Promise<State> => {
    await using app = openApp();
    const output = await define(app, { secret: secrets }).run(say('x'), state && { state });
    return must(output.state) as State;
  };
  const old = await run(secret);
  const rotated = await run([other, secret], old);
  await refused(run(secret, rotated), 'PERMISSION_DENIED');
  await refused(run(other, old), 'PERMISSION_DENIED');
  expect((await run(other, rotated)).seal).toEqual(expect.any(String));
});

test('S180 a state signed by version 0.1 is accepted, unless an age or an owner must be proven', async () => {
  await using app = openApp();
  const state: State = { sessionId: 's', messages: [{ role: 'user', content: [{ text: 'a' }] }] };
  const content = hashState(fromPlainState(state));
  const text = JSON.stringify(['waymark.state', 'chat', 's', content]);
  const old = { ...state, seal: hmacSha256(secret, text) };
  expect(await define(app, { secret }).run(say('x'), { state: old })).toMatchObject({
    finishReason: 'stop',
  });
  for (const options of [{ maxAge: 1_000 }, { bindOwner: true }]) {
    await using later = openApp();
    const chat = define(later, { secret, ...options });
    await refused(chat.run(say('x'), { state: old }), 'PERMISSION_DENIED');
  }
});

test('S181 with maxAge a state is refused once it is older, and its time cannot be forged', async () => {
  const clock = fakeClock('2026-01-01T00:00:00Z');
  await using app = openApp({ clock });
  const chat = define(app, { secret, maxAge: 60_000 });
  const state = must((await chat.runText('x')).state) as State;
  await clock.advance(60_000);
  expect(await chat.run(say('y'), { state })).toMatchObject({ finishReason: 'stop' });
  await clock.advance(1);
  const error = await refused(chat.run(say('y'), { state }), 'PERMISSION_DENIED');
  expect(error.message).toContain('older');
  const [, mac] = must(state.seal).split('.');
  const fresher = { ...state, seal: `${clock.now().toString(36)}.${mac}` };
  await refused(chat.run(say('y'), { state: fresher }), 'PERMISSION_DENIED');
});

test('S181 with bindOwner a state is accepted from its owner only', async () => {
  await using app = openApp();
  const chat = define(app, { secret, bindOwner: true });
  const state = must((await chat.run(say('x'), { owner: 'ada' })).state) as State;
  for (const owner of ['bob', undefined]) {
    const call = chat.run(say('y'), { state, ...(owner !== undefined && { owner }) });
    await refused(call, 'PERMISSION_DENIED');
  }
  expect(await chat.run(say('y'), { state, owner: 'ada' })).toMatchObject({ finishReason: 'stop' });
});

const restart = {
  resume: { restart: [{ toolRequest: { name: 'pay', ref: 'r', input: { amount: 3 } } }] },
};

function definePay(app: TestApp, clientState: ClientStateOptions) {
  const keys: string[] = [];
  const pay = app.defineTool(
    { name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }) },
    (_, { resumed, interrupt, idempotencyKey }) => {
      if (resumed === undefined) return interrupt({ why: 'money' });
      keys.push(idempotencyKey);
      return 'paid';
    },
  );
  const model = scriptedModel({
    patterns: [[/./, { toolCalls: [{ name: 'pay', ref: 'r', input: { amount: 3 } }] }]],
    afterTools: () => 'done',
    otherwise: '',
  });
  const chat = app.defineAgent({ name: 'chat', store: false, clientState, tools: [pay], model });
  return { chat, keys };
}

test('S182 an approval of a client-held state that is sent again has the same idempotency key', async () => {
  await using app = openApp();
  const { chat, keys } = definePay(app, { secret });
  const first = must((await chat.runText('pay 3')).state) as State;
  const second = must((await chat.runText('pay 3')).state) as State;
  // As it comes back over the network: a copy.
  const copy = structuredClone(first);
  await chat.run(restart, { state: first });
  await chat.run(restart, { state: copy });
  await chat.run(restart, { state: second });
  expect(keys).toHaveLength(3);
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

test.each([
  ['memory', () => memoryStore()],
  ['sqlite', () => sqliteStore(':memory:')],
])('S182 with a replay guard on %s an approval runs its tool once', async (_, open) => {
  const guard = open();
  await using app = openApp();
  const { chat, keys } = definePay(app, { secret, replayGuard: guard });
  const state = must((await chat.runText('pay 3')).state) as State;
  const wrong = { resume: { restart: [{ toolRequest: { name: 'pay', ref: 'x' } }] } };
  await refused(chat.run(wrong, { state }), 'INVALID_ARGUMENT');
  const all = await Promise.allSettled(
    [1, 2, 3].map(() => chat.run(restart, { state: structuredClone(state) })),
  );
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const each of all) {
    if (each.status === 'rejected') {
      expect(each.reason).toMatchObject({ status: 'FAILED_PRECONDITION' });
    }
  }
  expect(keys).toHaveLength(1);
  await guard.close?.();
});
