import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type Agent,
  type Artifact,
  agentTool,
  memoryStore,
  type NewFile,
  type OpenedFile,
  type Session,
  type Store,
} from 'waymark';
import { fileStore } from 'waymark/file';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { openApp } from './support/kit.ts';

const bytes = Uint8Array.from({ length: 700_000 }, (_, at) => (at * 31) % 251);
const hash = createHash('sha256').update(bytes).digest('hex');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-saved-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** An agent that does one thing in each turn. */
function agentThat(
  app: ReturnType<typeof openApp>,
  act: (session: Session, signal: AbortSignal) => Promise<unknown>,
  name = 'files',
): Agent {
  return app.defineCustomAgent({ name }, async (session) => {
    await session.run(async (_, { signal }) => {
      await act(session, signal);
    });
  });
}

async function contentOf({ stream }: OpenedFile): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function statusOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => 'it succeeded',
    (error: { status?: unknown }) => error.status ?? error,
  );
}

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  sqlite: () => sqliteStore(join(folder, 'store.db')),
  files: () => fileStore(join(folder, 'store')),
};

describe.each(Object.keys(stores))('a file that a turn saves (%s)', (kind) => {
  const open = (): Store => stores[kind]?.() ?? expect.fail(kind);

  test('S626: is an artifact that names it, and is opened in the turn, by the agent and in ranges', async () => {
    await using app = openApp({ store: open() });
    const forms: Readonly<Record<string, () => NewFile['data']>> = {
      bytes: () => bytes,
      blob: () => new Blob([bytes], { type: 'image/png' }),
      stream: () => new Blob([bytes]).stream(),
      iterable: async function* () {
        for (let at = 0; at < bytes.length; at += 9_999) yield bytes.subarray(at, at + 9_999);
      },
    };
    const seen: unknown[] = [];
    const agent = agentThat(app, async (session) => {
      for (const [name, data] of Object.entries(forms)) {
        const saved = await session.saveFile({ name, data: data() });
        const opened = await session.openFile(name);
        seen.push([saved.name, opened.size, opened.contentType, opened.hash]);
        expect(await contentOf(opened)).toEqual(bytes);
      }
    });
    const { stream, output } = agent.stream('go', { sessionId: 's' });
    const chunks: string[] = [];
    for await (const chunk of stream) chunks.push(JSON.stringify(chunk));
    // The bytes are not in the stream.
    expect(chunks.join('').length).toBeLessThan(5_000);
    expect(seen).toEqual([
      ['bytes', 700_000, 'application/octet-stream', hash],
      ['blob', 700_000, 'image/png', hash],
      ['stream', 700_000, 'application/octet-stream', hash],
      ['iterable', 700_000, 'application/octet-stream', hash],
    ]);
    const { artifacts } = await output;
    expect(artifacts?.[1]).toEqual({
      name: 'blob',
      parts: [
        {
          media: { url: `waymark-file:${hash}`, contentType: 'image/png' },
          metadata: { size: 700_000 },
        },
      ],
    });
    const whole = await agent.openFile({ sessionId: 's' }, 'blob');
    expect(await contentOf(whole)).toEqual(bytes);
    const part = await agent.openFile({ sessionId: 's' }, 'blob', {
      range: { start: 300_000, end: 300_010 },
    });
    expect([part.size, await contentOf(part)]).toEqual([700_000, bytes.slice(300_000, 300_010)]);
    const end = await agent.openFile({ sessionId: 's' }, 'blob', {
      range: { start: 699_999, end: 9_000_000 },
    });
    expect(await contentOf(end)).toEqual(bytes.slice(699_999));
    expect(await statusOf(agent.openFile({ sessionId: 's' }, 'none'))).toBe('NOT_FOUND');
    expect(await statusOf(agent.openFile({ sessionId: 't' }, 'blob'))).toBe('NOT_FOUND');
    expect(await statusOf(agent.openFile({ sessionId: 's' }, 'blob', { owner: 'eve' }))).toBe(
      'NOT_FOUND',
    );
    const backwards = { range: { start: 2, end: 1 } };
    expect(await statusOf(agent.openFile({ sessionId: 's' }, 'blob', backwards))).toBe(
      'INVALID_ARGUMENT',
    );
  });

  test('S627: stays with earlier snapshots when a later turn replaces or removes it', async () => {
    await using app = openApp({ store: open() });
    let turn = 0;
    const agent = agentThat(app, async (session) => {
      turn++;
      if (turn === 1) await session.saveFile({ name: 'a', data: bytes });
      if (turn === 2) await session.saveFile({ name: 'a', data: bytes.subarray(1) });
      if (turn === 3) session.setArtifacts([]);
    });
    const first = await agent.run('1', { sessionId: 's' });
    await agent.run('2', { sessionId: 's' });
    await agent.run('3', { sessionId: 's' });
    const fork = await agent.fork(first);
    for (const at of [first, fork]) {
      expect(await contentOf(await agent.openFile(at.snapshotId ?? '', 'a'))).toEqual(bytes);
    }
    expect(await statusOf(agent.openFile({ sessionId: 's' }, 'a'))).toBe('NOT_FOUND');
  });

  test('S630: larger than allowed is RESOURCE_EXHAUSTED, and the turn can go on', async () => {
    const store = open();
    await using app = openApp({ store });
    const agent = app.defineCustomAgent(
      { name: 'files', limits: { session: { fileSize: 600_000 } } },
      async (session) => {
        await session.run(async () => {
          const endless = async function* (): AsyncGenerator<Uint8Array> {
            for (;;) yield bytes.subarray(0, 1_000);
          };
          expect(await statusOf(session.saveFile({ name: 'a', data: bytes }))).toBe(
            'RESOURCE_EXHAUSTED',
          );
          expect(await statusOf(session.saveFile({ name: 'b', data: endless() }))).toBe(
            'RESOURCE_EXHAUSTED',
          );
          expect(
            await statusOf(session.saveFile({ name: 'c', data: endless(), maxSize: 10 })),
          ).toBe('RESOURCE_EXHAUSTED');
          await session.saveFile({ name: 'd', data: bytes, maxSize: 700_000 });
        });
      },
    );
    const { artifacts } = await agent.run('go', { sessionId: 's' });
    expect(artifacts?.map(({ name }) => name)).toEqual(['d']);
    expect(await store.maintenance?.verify()).toEqual([]);
  });

  test('S630: a turn that is stopped stops the upload, also of a source that hangs', async () => {
    const store = open();
    await using app = openApp({ store });
    const caller = new AbortController();
    let cancelled = false;
    let seen: unknown;
    const agent = agentThat(app, async (session) => {
      const data = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (cancelled) return;
          controller.enqueue(bytes);
          caller.abort();
          return new Promise(() => {});
        },
        cancel() {
          cancelled = true;
        },
      });
      seen = await statusOf(session.saveFile({ name: 'a', data }));
    });
    const output = await agent.run('go', { sessionId: 's', signal: caller.signal });
    expect(output.finishReason).toBe('aborted');
    expect([seen, cancelled]).toEqual(['CANCELLED', true]);
    expect(await store.maintenance?.verify()).toEqual([]);
    expect(await store.files?.open({ scope: { agent: 'files' }, sessionId: 's' }, hash)).toBe(
      undefined,
    );
  });

  test('S631: is not opened by its hash: an artifact that names a file of another session is refused', async () => {
    await using app = openApp({ store: open() });
    const saver = agentThat(
      app,
      (session) => session.saveFile({ name: 'a', data: bytes }),
      'saver',
    );
    const { artifacts: [stolen] = [] } = await saver.run('go', { sessionId: 's', owner: 'ann' });
    const artifact = stolen as Artifact;
    const statuses: unknown[] = [];
    const thief = agentThat(
      app,
      async (session) => {
        for (const steal of [
          () => session.addArtifacts(artifact),
          () => session.setArtifacts([artifact]),
        ]) {
          statuses.push(await statusOf((async () => steal())()));
        }
      },
      'thief',
    );
    const output = await thief.run('go', { sessionId: 's', owner: 'eve' });
    statuses.push(await statusOf(thief.edit(output, { artifacts: [artifact] }, { owner: 'eve' })));
    expect(statuses).toEqual(['INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
    // What the session has can be given another name.
    const renamed = { ...artifact, name: 'b' };
    const own = await saver.run('again', { sessionId: 's', owner: 'ann' });
    const edited = await saver.edit(own, { artifacts: [renamed] }, { owner: 'ann' });
    const opened = await saver.openFile(edited, 'b', { owner: 'ann' });
    expect(await contentOf(opened)).toEqual(bytes);
  });

  test('S627: of a sub-agent is one of the parent', async () => {
    await using app = openApp({ store: open() });
    const helper = agentThat(
      app,
      async (session) => {
        await session.saveFile({ name: 'a', data: bytes });
        session.addMessages({ role: 'model', content: [{ text: 'done' }] });
      },
      'helper',
    );
    const parent = app.defineAgent({
      name: 'parent',
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { message: 'make it' } }] },
        'There it is.',
      ]),
      tools: [agentTool(helper)],
    });
    await parent.run('go', { sessionId: 's', owner: 'ann' });
    const opened = await parent.openFile({ sessionId: 's' }, 'helper/a', { owner: 'ann' });
    expect(await contentOf(opened)).toEqual(bytes);
    const { items } = await helper.listSessions({ owner: 'ann' });
    for (const { sessionId } of items) await helper.deleteSession(sessionId, { owner: 'ann' });
    const still = await parent.openFile({ sessionId: 's' }, 'helper/a', { owner: 'ann' });
    expect(await contentOf(still)).toEqual(bytes);
  });
});

test('S632: what a transform hides cannot be opened', async () => {
  await using app = openApp({ store: memoryStore() });
  const agent = app.defineCustomAgent(
    { name: 'private', transform: { state: ({ artifacts: _, ...rest }) => rest } },
    async (session) => {
      await session.run(async () => {
        await session.saveFile({ name: 'a', data: bytes });
      });
    },
  );
  await agent.run('go', { sessionId: 's' });
  expect(await statusOf(agent.openFile({ sessionId: 's' }, 'a'))).toBe('NOT_FOUND');
});

test('S633: without a store that keeps files, or outside a turn, saveFile says what to do', async () => {
  await using app = openApp({ store: memoryStore() });
  const errors: unknown[] = [];
  const attempt = async (session: Session): Promise<void> => {
    await session.saveFile({ name: 'a', data: bytes }).catch((error: Error) => {
      errors.push(error.message);
    });
  };
  const { files: _, ...plain } = memoryStore();
  const clientHeld = app.defineCustomAgent({ name: 'held', store: false }, async (session) => {
    await session.run(() => attempt(session));
  });
  const plainStore = app.defineCustomAgent({ name: 'plain', store: plain }, async (session) => {
    await session.run(() => attempt(session));
  });
  const outside = app.defineCustomAgent({ name: 'outside' }, async (session) => {
    await attempt(session);
    await session.run(async () => {
      await expect(session.saveFile({ name: '', data: bytes })).rejects.toThrow('name');
      const odd = { name: 'a', data: 'text' as unknown as Uint8Array };
      await expect(session.saveFile(odd)).rejects.toThrow('Uint8Array');
    });
    // The invocation saves what comes after its turns, too.
    await attempt(session);
  });
  for (const agent of [clientHeld, plainStore]) await agent.run('go');
  const output = await outside.run('go');
  expect(await contentOf(await outside.openFile(output, 'a'))).toEqual(bytes);
  expect(errors).toEqual([
    expect.stringMatching(/^Agent "held" has no store.*sqliteStore/),
    expect.stringMatching(/^The store of agent "plain" cannot keep files.*sqliteStore/),
    expect.stringMatching(/running turn/),
  ]);
});
