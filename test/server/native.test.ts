import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import {
  allEvents,
  createTestApp,
  get,
  post,
  readEvents,
  startServer,
  streamTurn,
  textOf,
  userInput,
} from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;

beforeAll(async () => {
  server = await startServer({ keepAlive: 50 });
  ({ url } = server);
});
afterAll(() => server.close());

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
async function runTurn(text: string, init?: object): Promise<any> {
  const response = await post(`${url}/agents/chat/turns`, {
    ...(init && { init }),
    input: userInput(text),
  });
  return response.json();
}

describe('agents', () => {
  test('are listed with what their store can do', async () => {
    const { items } = await get(`${url}/agents`);
    expect(items.map(({ name }: { name: string }) => name)).toEqual([
      'chat',
      'other',
      'held',
      'sealed',
      'busy',
    ]);
    expect(items[0].metadata).toMatchObject({
      stateManagement: 'server',
      watchable: true,
      timeline: true,
    });
    expect(await get(`${url}/agents/held`)).toMatchObject({
      metadata: { stateManagement: 'client' },
    });
  });

  test('an unknown one is NOT_FOUND', async () => {
    const response = await fetch(`${url}/agents/nobody`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ status: 'NOT_FOUND' });
  });
});

describe('turns', () => {
  test('as JSON give the output', async () => {
    expect(await runTurn('hello')).toMatchObject({
      finishReason: 'stop',
      message: { role: 'model', content: [{ text: 'You said 1 things.' }] },
    });
  });

  test.each([
    [
      { sessionId: 's', input: userInput('hi') },
      'Unknown field "sessionId" of a turn. It is a field of `init`: {"init":{"sessionId":"…"},"input":{…}}.',
    ],
    [
      { init: { sesionId: 's' }, input: userInput('hi') },
      'Unknown field "sesionId" of `init`. Did you mean "sessionId"?',
    ],
    [
      { init: { from: 's' }, input: userInput('hi') },
      'init.from: must be null; a snapshot to continue from is called "snapshotId"',
    ],
    [{ detach: true, input: userInput('hi') }, 'It is a field of `input`: {"input":{"detach":…}}.'],
    ...[
      { message: 'hi' },
      { input: 'hi' },
      { input: { message: 'hi' } },
      { input: { text: 'hi' } },
      { messages: [] },
    ].map((body): [object, string] => [
      body,
      'A message of the user is sent as {"input":{"message":{"role":"user","content":[{"text":"…"}]}}}.',
    ]),
  ])('S583 a misplaced or unknown field is refused: %j', async (body, message) => {
    const { items } = await get(`${url}/agents/chat/sessions`);
    const response = await post(`${url}/agents/chat/turns`, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message),
    });
    expect((await get(`${url}/agents/chat/sessions`)).items).toEqual(items);
  });

  test('S583 other bodies of the native protocol refuse unknown fields, too', async () => {
    const { sessionId, snapshotId } = await runTurn('hello');
    const at = `${url}/agents/chat/snapshots/${snapshotId}`;
    for (const [method, to, body] of [
      ['PATCH', at, { lable: 'x', label: null }],
      ['POST', `${at}/restore`, { force: true }],
      ['POST', `${at}/fork`, { session: 'x' }],
      ['PATCH', `${url}/agents/chat/sessions/${sessionId}`, { titel: 'x' }],
    ] as const) {
      const response = await fetch(to, { method, body: JSON.stringify(body) });
      expect(await response.json()).toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/^Unknown field /),
      });
    }
  });

  test('as a stream give chunks with ids, and the output', async () => {
    const response = await streamTurn(url, 'count 5');
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const events = await allEvents(response);
    expect(events.at(0)?.data.turnStart.turnIndex).toBe(0);
    expect(textOf(events)).toBe('0 1 2 3 4 ');
    expect(events.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
    const ids = events.filter(({ event }) => event === 'chunk').map(({ id }) => id);
    expect(ids).toEqual(ids.map((_, at) => `1.${at}`));
  });

  test('continue by session and by snapshot', async () => {
    const { sessionId, snapshotId } = await runTurn('one');
    const second = await runTurn('two', { sessionId });
    expect(second.message.content[0].text).toBe('You said 2 things.');
    const branch = await runTurn('three', { snapshotId });
    expect(branch).toMatchObject({
      sessionId,
      message: { content: [{ text: 'You said 2 things.' }] },
    });
  });

  test('that fail are an output, without the text of the exception', async () => {
    for (const response of [
      await post(`${url}/agents/chat/turns`, { input: userInput('fail') }),
      await streamTurn(url, 'fail'),
    ]) {
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text).not.toContain('secret');
      expect(text).toContain('"finishReason":"failed"');
      expect(text).toContain('"INTERNAL"');
    }
  });

  test('that are refused get their HTTP status, also as a stream', async () => {
    const unknown = '0193b7a0-0000-7000-8000-000000000000';
    const cases = [
      [404, 'NOT_FOUND', { init: { snapshotId: unknown }, input: userInput('x') }],
      [400, 'FAILED_PRECONDITION', { init: { state: {} }, input: userInput('x') }],
      [400, 'INVALID_ARGUMENT', { init: { state: {}, sessionId: 'a' }, input: userInput('x') }],
      [400, 'INVALID_ARGUMENT', { input: {} }],
      [400, 'INVALID_ARGUMENT', {}],
      [400, 'INVALID_ARGUMENT', { input: { message: { role: 'nobody', content: [] } } }],
    ] as const;
    for (const [status, name, body] of cases) {
      for (const accept of ['application/json', 'text/event-stream']) {
        const response = await post(`${url}/agents/chat/turns`, body, { accept });
        expect(await response.json()).toMatchObject({ status: name });
        expect(response.status).toBe(status);
      }
    }
  });

  test('two at once on one session: the second is refused and told what runs', async () => {
    const sessionId = 'busy-session';
    const first = await streamTurn(url, 'hang', { init: { sessionId } });
    const events = readEvents(first);
    const started = (await events.next()).value;
    const second = await post(`${url}/agents/chat/turns`, {
      init: { sessionId },
      input: userInput('x'),
    });
    expect(second.status).toBe(409);
    const running = started?.data.turnStart.snapshotId;
    expect(await second.json()).toMatchObject({ status: 'ABORTED', details: { running } });
    const stopped = await post(`${url}/agents/chat/snapshots/${running}/abort`, {});
    expect(await stopped.json()).toMatchObject({ snapshotId: running });
    let last: unknown;
    for await (const event of events) last = event;
    expect(last).toMatchObject({ event: 'output', data: { finishReason: 'aborted' } });
  });

  test('interrupts are answered over the wire', async () => {
    const { sessionId, finishReason, message } = await runTurn('transfer 5');
    expect(finishReason).toBe('interrupted');
    const { toolRequest, metadata } = message.content[0];
    expect(metadata.interrupt).toEqual({ sum: 5 });
    const forged = { toolRequest: { ...toolRequest, input: { sum: 5000 } } };
    const refused = await post(`${url}/agents/chat/turns`, {
      init: { sessionId },
      input: { resume: { restart: [forged] } },
    });
    expect(refused.status).toBe(400);
    const resumed = await post(`${url}/agents/chat/turns`, {
      init: { sessionId },
      input: { resume: { restart: [{ toolRequest, metadata: { resumed: { ok: true } } }] } },
    });
    const output = await resumed.json();
    expect(output.message.content[0].text).toContain('"resumed":{"ok":true}');
    const twice = await post(`${url}/agents/chat/turns`, {
      init: { sessionId },
      input: { resume: { restart: [{ toolRequest }] } },
    });
    expect((await twice.json()).status).toBe('FAILED_PRECONDITION');
  });

  test('detach leaves the run to itself, and it can be watched', async () => {
    const detached = await post(`${url}/agents/chat/turns`, {
      input: { ...userInput('count 20 5'), detach: true },
    });
    const { finishReason, snapshotId } = await detached.json();
    expect(finishReason).toBe('detached');
    const events = await allEvents(
      await fetch(`${url}/agents/chat/snapshots/${snapshotId}/events`),
    );
    expect(textOf(events)).toContain('18 19 ');
    expect(events.at(-1)).toMatchObject({
      event: 'output',
      data: { snapshotId, finishReason: 'stop' },
    });
  });

  test('a client-held state comes back with the output and goes in again', async () => {
    const first = await (await post(`${url}/agents/held/turns`, { input: userInput('a') })).json();
    expect(first.state.messages).toHaveLength(2);
    const { state } = first;
    const second = await allEvents(await streamTurn(url, 'b', { agent: 'held', init: { state } }));
    expect(second.at(-1)?.data.state.messages).toHaveLength(4);
    expect(second.every(({ id }) => id === undefined)).toBe(true);
  });
});

describe('events', () => {
  test('a cut stream continues at the last event, without gap or repeat', async () => {
    const response = await streamTurn(url, 'count 40 3');
    const seen = [];
    for await (const event of readEvents(response)) {
      seen.push(event);
      if (seen.length === 10) break;
    }
    const { snapshotId } = seen[0]?.data.turnStart ?? {};
    const rest = await fetch(`${url}/agents/chat/snapshots/${snapshotId}/events`, {
      headers: { 'last-event-id': seen.at(-1)?.id ?? '' },
    });
    const events = [...seen, ...(await allEvents(rest))];
    expect(textOf(events)).toBe(Array.from({ length: 40 }, (_, at) => `${at} `).join(''));
    expect(events.at(-1)?.event).toBe('output');
    const ids = events.slice(0, -1).map(({ id }) => id);
    expect(ids).toEqual(ids.map((_, at) => `1.${at}`));
  });

  test('an ended run can still be read, from any place', async () => {
    const whole = await allEvents(await streamTurn(url, 'count 10'));
    const { snapshotId } = whole[0]?.data.turnStart ?? {};
    const at = `${url}/agents/chat/snapshots/${snapshotId}/events`;
    const chunks = whole.slice(0, -1);
    expect((await allEvents(await fetch(at))).slice(0, -1)).toEqual(chunks);
    const after = await allEvents(await fetch(`${at}?after=${chunks[4]?.id}`));
    expect(after.slice(0, -1)).toEqual(chunks.slice(5));
    expect(after.at(-1)?.data).toMatchObject({ snapshotId, message: { role: 'model' } });
  });

  test('what is not a run or not an event id is refused by its status', async () => {
    const at = `${url}/agents/chat/snapshots`;
    const unknown = await fetch(`${at}/0193b7a0-0000-7000-8000-000000000000/events`);
    expect(unknown.status).toBe(404);
    const bad = await fetch(`${at}/x/events`, { headers: { 'last-event-id': 'seven' } });
    expect(bad.status).toBe(400);
    expect(await bad.json()).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  test('silence is filled with comments', async () => {
    const response = await streamTurn(url, 'hang', { init: { sessionId: 'silent' } });
    let text = '';
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) {
      text += decoder.decode(piece);
      if (text.includes(': keep-alive\n\n: keep-alive\n\n')) break;
    }
    const { running } = await get(`${url}/agents/chat/sessions/silent`);
    await post(`${url}/agents/chat/snapshots/${running}/abort`, {});
  });

  test('curl -N shows a turn as it comes', async () => {
    const { stdout } = await promisify(execFile)('curl', [
      '-sN',
      '-H',
      'accept: text/event-stream',
      '-d',
      JSON.stringify({ input: userInput('count 3') }),
      `${url}/agents/chat/turns`,
    ]);
    expect(stdout).toMatch(/^event: chunk\nid: 1\.0\ndata: \{"turnStart"/);
    expect(stdout).toMatch(/event: output\ndata: \{.*\}\n\n$/);
  });
});

describe('sessions and snapshots', () => {
  test('are listed, read, labelled, compared, restored, forked and erased', async () => {
    const { sessionId, snapshotId: first } = await runTurn('remember rain');
    const { snapshotId: second } = await runTurn('remember sun', { sessionId });
    const session = `${url}/agents/chat/sessions/${sessionId}`;
    const snapshots = `${url}/agents/chat/snapshots`;
    const patch = (at: string, body: object): Promise<unknown> =>
      get(at, { method: 'PATCH', body: JSON.stringify(body) });

    expect(await patch(session, { title: 'Weather' })).toMatchObject({ title: 'Weather' });
    const { items } = await get(`${url}/agents/chat/sessions?query=Weather&limit=5`);
    expect(items).toMatchObject([{ sessionId, title: 'Weather', headId: second, turnCount: 2 }]);
    expect((await get(session)).state.custom).toEqual({ topics: ['rain', 'sun'] });
    expect(await get(`${session}/snapshot`)).toMatchObject({ snapshotId: second });

    const timeline = await get(`${session}/snapshots`);
    expect(timeline.items.map(({ snapshotId }: { snapshotId: string }) => snapshotId)).toEqual([
      first,
      second,
    ]);
    expect(timeline.items[0].state).toBeUndefined();
    expect(await patch(`${snapshots}/${first}`, { label: 'good' })).toMatchObject({
      label: 'good',
    });

    const diff = await get(`${snapshots}/${first}/diff/${second}`);
    expect(diff.custom).toEqual([{ op: 'add', path: '/topics/1', value: 'sun' }]);
    expect(diff.artifacts).toMatchObject([{ name: 'topics.md', change: 'changed' }]);

    await post(`${snapshots}/${first}/restore`, {});
    expect(await get(`${snapshots}/${second}`)).toMatchObject({ orphaned: true });
    const kept = await get(`${session}/snapshots?includeOrphaned=true`);
    expect(kept.items).toHaveLength(2);
    expect((await get(`${session}/snapshots`)).items).toHaveLength(1);

    const fork = await (await fetch(`${snapshots}/${second}/fork`, { method: 'POST' })).json();
    expect(fork.sessionId).not.toBe(sessionId);
    const named = await (
      await post(`${snapshots}/${second}/fork`, { sessionId: 'my-fork' })
    ).json();
    expect(named.sessionId).toBe('my-fork');

    expect((await fetch(session, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(session, { method: 'DELETE' })).status).toBe(404);
    expect((await fetch(session)).status).toBe(404);
    expect((await get(`${url}/agents/chat/sessions/my-fork`)).state.custom.topics).toHaveLength(2);
  });

  test('a page has a cursor for the next', async () => {
    const { sessionId } = await runTurn('1');
    for (const text of ['2', '3', '4', '5']) await runTurn(text, { sessionId });
    const at = `${url}/agents/chat/sessions/${sessionId}/snapshots`;
    const first = await get(`${at}?limit=3`);
    const second = await get(`${at}?limit=3&cursor=${encodeURIComponent(first.next)}`);
    expect(first.items).toHaveLength(3);
    expect(second.items).toHaveLength(2);
    expect(second.next).toBeUndefined();
    expect((await fetch(`${at}?limit=0`)).status).toBe(400);
    expect((await fetch(`${at}?limit=many`)).status).toBe(400);
    expect((await fetch(`${at}?includeOrphaned=perhaps`)).status).toBe(400);
  });
});

describe('a client that leaves', () => {
  test('the turn continues by default', async () => {
    const controller = new AbortController();
    const sessionId = 'left-alone';
    const response = await fetch(`${url}/agents/chat/turns`, {
      method: 'POST',
      headers: { accept: 'text/event-stream' },
      body: JSON.stringify({ init: { sessionId }, input: userInput('count 10 10') }),
      signal: controller.signal,
    });
    await readEvents(response).next();
    controller.abort();
    await eventually(async () => {
      const { state, running } = await get(`${url}/agents/chat/sessions/${sessionId}`);
      expect(running).toBeUndefined();
      expect(state.messages.at(-1).content[0].text).toMatch(/9 $/);
    });
  });

  test('before its turn is accepted, the turn is stopped where the server was told so', async () => {
    const store = memoryStore();
    const { runs } = store;
    if (!runs) throw new Error('The store has no runs.');
    const claiming = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const claim: typeof runs.claim = async (...given) => {
      claiming.resolve();
      await left.promise;
      return await runs.claim(...given);
    };
    const answered = Promise.withResolvers<unknown>();
    const strict = await startServer({
      app: createTestApp({ store: { ...store, runs: { ...runs, claim } } }),
      onDisconnect: 'abort',
      log: ({ msg, operation }) => msg === 'request' && answered.resolve(operation),
    });
    try {
      const controller = new AbortController();
      const asked = fetch(`${strict.url}/agents/chat/turns`, {
        method: 'POST',
        headers: { accept: 'text/event-stream' },
        body: JSON.stringify({ init: { sessionId: 's' }, input: userInput('hang') }),
        signal: controller.signal,
      });
      await claiming.promise;
      controller.abort();
      await expect(asked).rejects.toThrow();
      left.resolve();
      expect(await answered.promise).toBe('runTurn');
      await eventually(async () => {
        expect((await get(`${strict.url}/agents/chat/sessions/s`)).running).toBeUndefined();
      });
    } finally {
      await strict.close();
    }
  });

  test('the turn is stopped where the server was told so, and keeps its partial answer', async () => {
    const strict = await startServer({ onDisconnect: 'abort' });
    try {
      const controller = new AbortController();
      const response = await fetch(`${strict.url}/agents/chat/turns`, {
        method: 'POST',
        headers: { accept: 'text/event-stream' },
        body: JSON.stringify({ init: { sessionId: 's' }, input: userInput('hang') }),
        signal: controller.signal,
      });
      const events = readEvents(response);
      for (let at = 0; at < 3; at++) await events.next();
      controller.abort();
      await eventually(async () => {
        const head = await get(`${strict.url}/agents/chat/sessions/s/snapshot`);
        expect(head).toMatchObject({ status: 'succeeded', finishReason: 'aborted' });
        expect(head.state.messages.at(-1).content[0].text).toMatch(/^It /);
      });
    } finally {
      await strict.close();
    }
  });
});

describe('the rest', () => {
  test('health and the document need nothing', async () => {
    expect(await get(`${url}/healthz`)).toMatchObject({ status: 'ok' });
    expect((await get(`${url}/openapi.json`)).openapi).toBe('3.1.0');
  });

  test('long answers are compressed, streams are not', async () => {
    const { sessionId } = await runTurn('x'.repeat(5000));
    const at = `${url}/agents/chat/sessions/${sessionId}`;
    const plain = await fetch(at, { headers: { 'accept-encoding': 'gzip' } });
    expect(plain.headers.get('content-encoding')).toBe('gzip');
    expect((await plain.json()).state.messages).toHaveLength(2);
    const stream = await streamTurn(url, 'hello', { headers: { 'accept-encoding': 'gzip' } });
    expect(stream.headers.get('content-encoding')).toBeNull();
    await stream.text();
    const small = await fetch(`${url}/healthz`, { headers: { 'accept-encoding': 'gzip' } });
    expect(small.headers.get('content-encoding')).toBeNull();
  });
});
