import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/api/types.ts';
import { createClient } from '../../src/client/client.ts';
import { patchArtifact } from '../../src/protocol/artifacts.ts';
import { textOf } from '../../src/protocol/messages.ts';
import type { Artifact } from '../../src/protocol/state.ts';
import type { Chunk } from '../../src/protocol/turn.ts';
import { createAgentStore } from '../../src/react/index.ts';
import { serve } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate } from './support/gate.ts';
import { all, openApp, type TestApp } from './support/kit.ts';
import { mortalStore } from './support/mortal-store.ts';

const long = 'A line of a long document.\n'.repeat(4_000);
const edited = (...words: string[]): string => words.join(' ') + long.slice(words.join(' ').length);

/** An agent that writes a long document, and then replaces its first two words with others of five and six letters. */
function defineEditor(app: TestApp, gate = openGate()) {
  return app.defineCustomAgent({ name: 'editor' }, async (session) => {
    await session.run(async ({ message }) => {
      if (textOf(message) === 'write') {
        return void session.addArtifacts({ name: 'doc', parts: [{ text: long }] });
      }
      const [, one = '', two = ''] = textOf(message).split(' ');
      session.editArtifact('doc', [{ from: 0, to: 5, text: one }]);
      await gate.wait();
      session.editArtifact('doc', [{ from: 5, to: 12, text: ` ${two}` }]);
    });
  });
}

function openGate() {
  const gate = createGate();
  gate.open();
  return gate;
}

const textOfArtifact = (artifact: Artifact | undefined): string =>
  textOf({ content: artifact?.parts ?? [] } as never);
const wholes = (chunks: readonly Chunk[]): string[] =>
  chunks.flatMap(({ artifact }) => (artifact ? [textOfArtifact(artifact)] : []));
const patches = (chunks: readonly Chunk[]) =>
  chunks.flatMap(({ artifactPatch }) => artifactPatch ?? []);
const both = [edited('first'), edited('first', 'second')];
const chunksOf = (events: readonly WatchEvent[]): Chunk[] =>
  events.flatMap((event) => (event.type === 'chunk' ? [event.chunk] : []));

test('S735 in process an edit of a long artifact comes with its patch; the store keeps the patch, and watch gives the artifact', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  await using other = openApp({ store, work: false });
  const editor = defineEditor(app);
  const { sessionId } = await editor.run('write');
  const turn = editor.stream('edit first second', { sessionId });
  const chunks = (await all(turn.stream)) as Chunk[];
  expect(wholes(chunks)).toEqual(both);
  expect(patches(chunks)).toEqual([
    { name: 'doc', length: long.length, edits: [{ from: 0, to: 5, text: 'first' }] },
    { name: 'doc', length: long.length, edits: [{ from: 5, to: 12, text: ' second' }] },
  ]);
  const run = await editor.start('edit third fourth', { sessionId });
  const later = [edited('third', 'second'), edited('third', 'fourth')];
  await run.wait();
  const page = await store.events?.read({ agent: 'editor' }, run.id, { limit: 100 });
  expect(JSON.stringify(page).length).toBeLessThan(3_000);
  const remote = defineEditor(other);
  const watched = await all(remote.watch(run.id));
  expect(wholes(chunksOf(watched as WatchEvent[]))).toEqual(later);
  // Wherever a watcher continues.
  const at = watched.findIndex((event) => event.type === 'chunk' && event.chunk.artifactPatch);
  const after = watched[at];
  if (after?.type !== 'chunk') throw new Error('No edit was seen.');
  const rest = await all(remote.watch(run.id, { after: after.id }));
  expect(wholes(chunksOf(rest as WatchEvent[]))).toEqual(later.slice(1));
});

describe('over a server', () => {
  let app: TestApp;
  let server: Awaited<ReturnType<typeof serve>>;
  const gate = createGate();
  beforeAll(async () => {
    app = openApp();
    defineEditor(app, gate);
    server = await serve(app, { port: 0, log: () => {} });
  });
  afterAll(async () => {
    await server.close();
    await app.close({ grace: 0 });
  });

  const transports = ['http', 'websocket'] as const;

  test.each(transports)(
    'S735 a React store shows the edited artifact while the turn runs, over %s',
    async (transport) => {
      const editor = createClient({ url: server.url, transport }).agent('editor');
      const store = createAgentStore({ agent: editor, throttle: 0 });
      const shown = (): string => textOfArtifact(store.getView().artifacts[0]);
      await store.actions.send('write');
      expect(shown()).toBe(long);
      const turn = store.actions.send('edit first second');
      if (transport === 'http') await expect.poll(shown).toBe(both[0]);
      gate.open();
      await turn;
      expect(shown()).toBe(both[1]);
    },
  );

  test.each(transports)(
    'S735 a client gets the whole artifact, or the edit if it asks for it, over %s',
    async (transport) => {
      gate.open();
      const editor = createClient({ url: server.url, transport }).agent('editor');
      const { sessionId } = await editor.run('write');
      const asBefore = (await all(
        editor.stream('edit first second', { sessionId }).stream,
      )) as Chunk[];
      expect(wholes(asBefore)).toEqual(both);
      expect(patches(asBefore)).toEqual([]);
      const { artifacts } = (await editor.getSession(sessionId))?.state ?? {};
      const asked = editor.stream('edit third fourth', { sessionId, artifacts: 'patches' });
      const chunks = (await all(asked.stream)) as Chunk[];
      expect(wholes(chunks)).toEqual([]);
      expect(JSON.stringify(chunks).length).toBeLessThan(3_000);
      let doc = artifacts?.[0];
      for (const patch of patches(chunks)) doc = patchArtifact(doc, patch);
      expect(textOfArtifact(doc)).toBe(edited('third', 'fourth'));
      const run = await editor.start('edit first second', { sessionId });
      await run.wait();
      for (const [options, count] of [
        [{}, 2],
        [{ artifacts: 'patches' }, 0],
      ] as const) {
        const watched = await all(run.watch(options));
        const seen = chunksOf(watched as WatchEvent[]);
        expect(wholes(seen)).toHaveLength(count);
        expect(patches(seen)).toHaveLength(2 - count);
      }
    },
  );
});

test('S735 a transform sees the whole artifact, and no edit passes it', async () => {
  await using app = openApp();
  const editor = app.defineCustomAgent(
    {
      name: 'editor',
      transform: {
        state: (state) => ({
          ...state,
          artifacts: state.artifacts?.map((each) => ({ ...each, parts: [{ text: '***' }] })),
        }),
      },
    },
    async (session) => {
      await session.run(async () => {
        session.addArtifacts({ name: 'doc', parts: [{ text: long }] });
        session.editArtifact('doc', [{ from: 0, to: 5, text: 'secret' }]);
      });
    },
  );
  const turn = editor.stream('go');
  expect(JSON.stringify(await all(turn.stream))).not.toContain('secret');
  const run = await editor.start('go');
  await run.wait();
  const watched = JSON.stringify(await all(run.watch()));
  expect(watched).toContain('***');
  expect(watched).not.toContain('secret');
});

test('S735 after a takeover the first edit of an artifact is streamed as a whole', async () => {
  const claimTtl = 60_000;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const editor = defineEditor(first, gate);
  const { sessionId } = await editor.run('write');
  const run = await editor.start('edit first second', { sessionId });
  await gate.reached;
  const heir = defineEditor(second);
  line.cut();
  advance(2 * claimTtl);
  await heir.wait(run.id);
  const events = await store.events?.read({ agent: 'editor' }, run.id, { limit: 100 });
  const again =
    events?.events.filter(({ attempt }) => attempt === 2).map(({ chunk }) => chunk) ?? [];
  expect(wholes(again)).toEqual(both.slice(0, 1));
  expect(patches(again)).toHaveLength(1);
  const watched = await all(heir.watch(run.id));
  expect(wholes(chunksOf(watched as WatchEvent[])).slice(-2)).toEqual(both);
  gate.open();
  await line.heal();
});
