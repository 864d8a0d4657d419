import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { callEverything } from '../fixtures/client-calls.ts';
import type { Recording } from '../fixtures/recording.ts';
import { serveTestApp } from './support/served.ts';

const unpacked = async (name: string): Promise<Buffer> =>
  gunzipSync(await readFile(new URL(`../fixtures/clients/0.1.0/${name}.gz`, import.meta.url)));

/** The client of 0.1, as far as it is used here. */
interface OldAgent {
  runText(text: string, options?: object): Promise<OldOutput>;
  run(input: object, options?: object): Promise<OldOutput>;
  streamText(
    text: string,
    options?: object,
  ): {
    readonly stream: AsyncIterable<{
      readonly modelChunk?: { readonly content: { text?: string }[] };
    }>;
    readonly output: Promise<OldOutput>;
  };
  getSnapshot(lookup: object): Promise<{ readonly status: string } | undefined>;
  getSession(id: string): Promise<{ readonly state?: { readonly custom?: unknown } } | undefined>;
  listSnapshots(id: string, options?: object): Promise<{ readonly items: readonly object[] }>;
  listSessions(): Promise<{ readonly items: readonly { readonly sessionId: string }[] }>;
  wait(id: string): Promise<{ readonly status: string }>;
  abort(id: string): Promise<string | undefined>;
  restore(id: string): Promise<{ readonly snapshotId: string }>;
  fork(id: string): Promise<{ readonly sessionId: string }>;
  diff(from: string, to: string): Promise<{ readonly custom: readonly object[] }>;
}
interface OldOutput {
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly finishReason?: string;
  readonly message?: { readonly content: readonly { text?: string; toolRequest?: object }[] };
  readonly error?: { readonly status: string };
}
type OldClient = (options: object) => OldAgent;

let served: Awaited<ReturnType<typeof serveTestApp>>;
let oldClient: OldClient;
let folder: string;
beforeAll(async () => {
  served = await serveTestApp();
  folder = await mkdtemp(join(tmpdir(), 'waymark-old-client-'));
  const path = join(folder, 'client.mjs');
  await writeFile(path, await unpacked('client.mjs'));
  oldClient = ((await import(pathToFileURL(path).href)) as { readonly client: OldClient }).client;
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const textOf = ({ message }: OldOutput): string | undefined => message?.content[0]?.text;

describe.each(['http', 'websocket'])('the client of 0.1 over %s with this server', (transport) => {
  const open = (options: object = {}): OldAgent =>
    oldClient({ url: served.url, agent: 'chat', transport, reconnect: { delay: 5 }, ...options });

  test('runs and streams turns in a session, and reads its state', async () => {
    const chat = open();
    const one = await chat.runText('say one two');
    expect(textOf(one)).toBe('one two');
    const { stream, output } = chat.streamText('note Lisbon', { sessionId: one.sessionId });
    const texts: string[] = [];
    for await (const { modelChunk } of stream)
      for (const { text } of modelChunk?.content ?? []) texts.push(text ?? '');
    expect(texts.join('')).toBe('noted');
    expect((await output).sessionId).toBe(one.sessionId);
    const session = await chat.getSession(one.sessionId);
    expect(session?.state?.custom).toEqual({ topics: ['Lisbon'] });
  });

  test('reports a failed turn as a result', async () => {
    const failed = await open().runText('fail');
    expect(failed).toMatchObject({ finishReason: 'failed', error: { status: expect.any(String) } });
  });

  test('answers an interrupt', async () => {
    const chat = open();
    const { sessionId, message, finishReason } = await chat.runText('book hotel');
    expect(finishReason).toBe('interrupted');
    const asked = message?.content.find(({ toolRequest }) => toolRequest !== undefined);
    const restart = [{ toolRequest: asked?.toolRequest, metadata: { resumed: true } }];
    const done = await chat.run({ resume: { restart } }, { sessionId });
    expect(textOf(done)).toContain('"booked":"hotel"');
  });

  test('stops a turn, and keeps its partial answer', async () => {
    const stop = new AbortController();
    const { stream, output } = open().streamText('hang', { signal: stop.signal });
    for await (const { modelChunk } of stream) if (modelChunk) stop.abort();
    expect(await output).toMatchObject({ finishReason: 'aborted' });
  });

  test('runs in the background, and aborts a run', async () => {
    const chat = open();
    const message = (text: string) => ({ role: 'user', content: [{ text }] });
    const { snapshotId } = await chat.run({ message: message('say hi'), detach: true });
    expect(await chat.wait(snapshotId)).toMatchObject({ status: 'succeeded' });
    const hanging = await chat.run({ message: message('hang'), detach: true });
    await chat.abort(hanging.snapshotId);
    expect(await chat.wait(hanging.snapshotId)).toMatchObject({ status: 'aborted' });
  });

  test('lists, compares, restores and forks', async () => {
    const chat = open();
    const one = await chat.runText('say one');
    const two = await chat.runText('note tea', { sessionId: one.sessionId });
    expect((await chat.listSnapshots(one.sessionId)).items).toHaveLength(2);
    const { items } = await chat.listSessions();
    expect(items.map(({ sessionId }) => sessionId)).toContain(one.sessionId);
    expect((await chat.diff(one.snapshotId, two.snapshotId)).custom).toHaveLength(1);
    expect((await chat.restore(one.snapshotId)).snapshotId).toBe(one.snapshotId);
    expect((await chat.fork(one.snapshotId)).sessionId).not.toBe(one.sessionId);
    expect(await chat.getSnapshot({ snapshotId: 'missing' })).toBeUndefined();
  });
});

test('the client of 0.1 reconnects to a stream that is cut', async () => {
  let cuts = 0;
  const cutting: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    const isStream = response.headers.get('content-type')?.includes('event-stream');
    if (!isStream || response.body === null || cuts === 2) return response;
    cuts++;
    let events = 0;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        controller.enqueue(piece);
        if (++events === 3) controller.error(new TypeError('terminated'));
      },
    });
    return new Response(response.body.pipeThrough(cut), response);
  };
  const chat = oldClient({
    url: served.url,
    agent: 'chat',
    fetch: cutting,
    reconnect: { delay: 5 },
  });
  const { stream, output } = chat.streamText('slow 12');
  const texts: string[] = [];
  for await (const { modelChunk } of stream)
    for (const { text } of modelChunk?.content ?? []) texts.push(text ?? '');
  expect(cuts).toBe(2);
  expect(textOf(await output)).toBe(texts.join(''));
});

test('this client reads what a server of 0.1 answered', async () => {
  const left = JSON.parse(String(await unpacked('responses.json'))) as Recording[];
  const replay: typeof fetch = async (url, init) => {
    const { pathname, search } = new URL(String(url));
    const wanted = `${init?.method ?? 'GET'} ${pathname}${search}`;
    const at = left.findIndex(({ method, path }) => `${method} ${path}` === wanted);
    const [answer] = at === -1 ? [] : left.splice(at, 1);
    if (answer === undefined) throw new Error(`No answer was recorded to ${wanted}.`);
    const { status, type, body } = answer;
    return new Response(body === '' ? null : body, {
      status,
      headers: type === null ? {} : { 'content-type': type },
    });
  };
  const chat = client({ url: 'http://recorded.test', agent: 'chat', fetch: replay });
  const read = await callEverything(chat);
  expect(left).toEqual([]);
  expect(read.info).toMatchObject({ name: 'chat', metadata: { timeline: true } });
  expect(read.one.text).toBe('one two');
  expect(read.chunks.at(-1)?.turnEnd).toMatchObject({ finishReason: 'stop' });
  expect(read.noted.text).toBe('["noted"]');
  expect(read.asked.interrupts).toMatchObject([
    { toolName: 'book', input: { what: 'hotel' }, metadata: { price: 40 } },
  ]);
  expect(read.booked.text).toBe('[{"booked":"hotel"}]');
  expect(read.failed).toMatchObject({
    finishReason: 'failed',
    error: { status: expect.any(String) },
  });
  expect(read.done.text).toBe('in the background');
  expect(read.events.at(-1)).toMatchObject({ type: 'end' });
  expect(read.session?.state?.custom).toEqual({ topics: ['Lisbon'] });
  expect(read.session?.title).toBeUndefined();
  expect(read.snapshots.items.length).toBeGreaterThan(2);
  expect(read.missing).toBeUndefined();
  expect(read.diff.custom).toHaveLength(1);
  expect(read.fork.sessionId).not.toBe(read.one.sessionId);
  expect(read.restored.snapshotId).toBe(read.one.snapshotId);
  expect(read.deleted).toBe(true);
});
