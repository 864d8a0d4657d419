import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentTool, waymark } from 'waymark';
import { type ServeOptions, serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-turns-'));
  await mkdir(join(folder, 'studio'));
  await writeFile(join(folder, 'studio', 'index.html'), '<!doctype html><title>Studio</title>');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function openServer(name: string, options: ServeOptions = {}) {
  const app = waymark({
    store: sqliteStore(join(folder, `${name}.db`)),
    price: () => ({ USD: 1_500 }),
  });
  const look = app.defineTool(
    { name: 'look', description: 'Looks.', input: z.object({}) },
    () => 'seen',
  );
  const model = scriptedModel(
    {
      patterns: [
        [/^look/, { toolCalls: [{ name: 'look', input: {} }] }],
        [/^fail/, { error: new Error('The model is away.') }],
      ],
      afterTools: () => 'I have looked.',
      otherwise: 'Hello.',
    },
    { name: 'script' },
  );
  const helper = app.defineAgent({ name: 'helper', model, tools: [look] });
  const boss = app.defineAgent({
    name: 'boss',
    model: scriptedModel({
      patterns: [[/.+/, { toolCalls: [{ name: 'helper', input: { message: 'look' } }] }]],
      afterTools: () => 'Done.',
      otherwise: '-',
    }),
    tools: [agentTool(helper)],
  });
  const server = await serve(app, {
    port: 0,
    log: () => {},
    studio: join(folder, 'studio'),
    studioData: join(folder, `${name}-data`),
    ...options,
  });
  const read = async (path: string) => {
    const response = await fetch(`${server.url}/studio/${path}`);
    return { status: response.status, body: await response.json() };
  };
  return {
    helper,
    boss,
    url: server.url,
    read,
    turns: async (query = '') => (await read(`turns${query}`)).body.items,
    async [Symbol.asyncDispose]() {
      await server.close();
      await app.close();
    },
  };
}

test('S538 turns of all sessions are listed with their figures, and found by agent, words and failure', async () => {
  await using server = await openServer('figures');
  const looked = await server.helper.runText('look around');
  await server.boss.runText('delegate');
  await expect(server.helper.runText('fail now')).rejects.toThrow();
  const turns = await server.turns();
  expect(turns.map(({ agent, asked }: Turn) => `${agent}: ${asked}`)).toEqual([
    'helper: fail now',
    'helper: look',
    'boss: delegate',
    'helper: look around',
  ]);
  const [failed, , delegated, first] = turns;
  expect(first).toMatchObject({
    sessionId: looked.sessionId,
    snapshotId: looked.snapshotId,
    turnIndex: 0,
    modelCalls: 2,
    toolCalls: 1,
    models: ['script'],
    mode: 'attached',
    attempt: 1,
    hasInput: true,
  });
  expect(first.tokens).toBe((looked.usage?.inputTokens ?? 0) + (looked.usage?.outputTokens ?? 0));
  expect(first.cost).toEqual(looked.usage?.cost);
  expect(first.endedAt).toBeGreaterThanOrEqual(first.startedAt);
  // The work of the sub-agent counts for the turn that asked for it.
  expect(delegated).toMatchObject({ modelCalls: 4, toolCalls: 2 });
  expect(failed.error.message).toContain('The model is away.');
  expect(failed.error.text).toContain('    at ');
  expect(await server.turns('?failed=1')).toEqual([failed]);
  expect(await server.turns('?agent=boss')).toEqual([delegated]);
  expect(await server.turns('?query=AROUND')).toEqual([first]);
  expect((await server.read('turns?limit=2')).body).toEqual({
    items: turns.slice(0, 2),
    isMore: true,
  });
  expect((await server.read('turns?limit=0')).status).toBe(400);
});

test('S538 the input of a turn is recorded with what it continued from, and survives a restart', async () => {
  let spanId = '';
  let sessionId = '';
  let from: string | undefined;
  {
    await using server = await openServer('restart');
    const first = await server.helper.runText('hello');
    ({ sessionId, snapshotId: from } = first);
    const run = await server.helper.start('look again', { sessionId });
    await run.wait();
    const [turn] = await server.turns('?detached=1');
    expect(turn).toMatchObject({ asked: 'look again', mode: 'detached', from });
    ({ spanId } = turn);
  }
  await using server = await openServer('restart');
  const turns = await server.turns();
  expect(turns.map(({ asked }: Turn) => asked)).toEqual(['look again', 'hello']);
  expect(turns[0].cost).toBeDefined();
  const { body } = await server.read(`calls?session=${sessionId}&span=${spanId}`);
  expect(body.content.from).toBe(from);
  expect(body.content.input.message.content).toEqual([{ text: 'look again' }]);
  await server.helper.deleteSession(sessionId);
  expect(await server.turns()).toEqual([]);
});

test('S564 sessions of the same id are told apart by their owner', async () => {
  await using server = await openServer('owners');
  await server.helper.runText('hello from Ann', { owner: 'ann', sessionId: 'main' });
  await server.helper.runText('hello from Bob', { owner: 'bob', sessionId: 'main' });
  const ofAnn = { headers: { 'x-waymark-owner': 'ann' } };
  const { items } = await (await fetch(`${server.url}/studio/traces?session=main`, ofAnn)).json();
  expect(items.length).toBeGreaterThan(0);
  const turns = await server.turns();
  const [bobs, anns] = turns.map(({ spanId }: { readonly spanId: string }) => spanId);
  const ids = items.map(({ spanId }: { readonly spanId: string }) => spanId);
  expect([ids.includes(anns), ids.includes(bobs)]).toEqual([true, false]);
  const content = (spanId: string) =>
    fetch(`${server.url}/studio/calls?session=main&span=${spanId}`, ofAnn);
  expect((await content(anns)).status).toBe(200);
  expect((await content(bobs)).status).toBe(404);
});

test('S538 an input that is too long to record is listed, but cannot be sent again', async () => {
  await using server = await openServer('long');
  await server.helper.runText(`long ${'x'.repeat(1_000_001)}`);
  const [turn] = await server.turns();
  expect(turn.asked).toHaveLength(240);
  expect(turn.hasInput).toBe(false);
});

test('S538 the list is for the person at this machine: no other host, no server with principals, no session that is forbidden', async () => {
  {
    await using server = await openServer('auth', { auth: () => ({ principal: 'ann' }) });
    expect((await fetch(`${server.url}/studio/turns`)).status).toBe(404);
  }
  {
    await using server = await openServer('forbidden', {
      authorize: ({ sessionId }) => sessionId !== 'secret',
    });
    await server.helper.runText('hello', { sessionId: 'secret' });
    await server.helper.runText('hello', { sessionId: 'open' });
    expect((await server.turns()).map((turn: Turn) => turn.sessionId)).toEqual(['open']);
  }
  await using server = await openServer('host');
  const status = await new Promise((resolve, reject) => {
    request(`${server.url}/studio/turns`, { headers: { host: 'evil.example' } }, (response) =>
      resolve(response.statusCode),
    )
      .on('error', reject)
      .end();
  });
  expect(status).toBe(403);
});

interface Turn {
  readonly agent: string;
  readonly asked: string;
  readonly sessionId: string;
}
