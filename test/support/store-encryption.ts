import { describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json/json.ts';
import type { Artifact } from '../../src/protocol/state.ts';
import { hashState } from '../../src/session/session-state.ts';
import type { Store } from '../../src/store/contract/store.ts';
import type { Encryption, SqlStore } from '../../src/store/sqlite/index.ts';
import { type Change, createTurns, text } from './store-workload.ts';

/** A database of the test's own that stores with different keys are opened on. */
export interface KeyedDatabase {
  open(encryption?: Encryption): SqlStore;
  /** Everything that is stored, as text. */
  dump(): Promise<string>;
  /** How many documents are stored. */
  documents(): Promise<number>;
  close(): Promise<void>;
}

const oldKey = new Uint8Array(32).fill(1);
const newKey = Buffer.alloc(32, 2).toString('base64');

const secret: Change = (state, turn) => {
  const messages = [text('user', `secret-message ${turn}`)];
  const url = `data:application/zip;base64,${btoa('secret-data '.repeat(1000))}`;
  const artifact: Artifact = {
    name: 'a',
    parts: [{ text: `secret-part ${turn} `.repeat(100) }, { media: { url } }],
  };
  return {
    state: {
      history: state.history.append(messages),
      custom: toJson({ note: `secret-custom ${turn}` }, 'custom'),
      artifacts: toJson([artifact], 'artifacts') as unknown as readonly Artifact[],
    },
  };
};

async function fill(store: Store): Promise<ReturnType<typeof createTurns>> {
  await store.open?.();
  const turns = createTurns(store);
  await turns.take(3, secret);
  const { scope, sessionId } = turns;
  const change = { title: 'secret-title', metadata: { about: 'secret-metadata' } };
  await store.timeline?.updateSession(scope, sessionId, change);
  await store.timeline?.label(scope, turns.base()?.snapshotId ?? '', 'secret-label');
  const held = await store.runs?.claim(scope, {
    runId: '01900000-0000-7000-8000-000000000001',
    sessionId,
    from: 'head',
    mode: 'accepted',
    inputs: [{ message: text('user', 'secret-input') }],
    context: { who: 'secret-context' },
    ttl: 60_000,
    worker: 'w',
  });
  if (held === undefined) expect.fail('not claimed');
  await store.events?.append(held, [{ attempt: 1, seq: 0, chunk: { status: 'secret-event' } }]);
  await store.runs?.saveStep(held, 'secret-step', 'secret-result');
  const version = { scope: '["m","app",""]', id: 'v', entry: 'e', value: 'secret-memory' };
  await store.memory?.add(version);
  const state = turns.base()?.state;
  if (state === undefined) expect.fail('no state');
  await store.runs?.checkpoint(held, {
    ...{ state, stateHash: hashState(state), inputsDone: 0, midTurn: true },
    memory: {
      versions: [],
      note: {
        path: [],
        given: [],
        pending: [{ ...version, value: 'secret-pending', seq: 1, message: 0 }],
      },
    },
  });
  const key = 'e'.repeat(64);
  const effect = { key, tool: 'secret-tool', input: 'secret-call', at: new Date(0).toISOString() };
  await store.effects?.save(held, key, effect);
  return turns;
}

/** Content at rest, under a key. */
export function storeEncryption(name: string, create: () => Promise<KeyedDatabase>): void {
  const using = async (work: (database: KeyedDatabase) => Promise<void>): Promise<void> => {
    const database = await create();
    try {
      await work(database);
    } finally {
      await database.close();
    }
  };

  describe(`encryption in ${name}`, () => {
    test('nothing that was said stands in the database, and everything reads as before', async () => {
      await using(async ({ open, dump }) => {
        const store = open({ key: oldKey });
        const { scope, sessionId } = await fill(store);
        const read = await store.getSnapshot(scope, { sessionId });
        expect(read?.label).toBe('secret-label');
        expect(JSON.stringify(read?.state)).toContain('secret-part 2');
        expect(JSON.stringify(read?.state)).toContain(btoa('secret-data '.repeat(1000)));
        const found = await store.timeline?.listSessions(scope, { query: 'SECRET-meta' });
        expect(found?.items).toMatchObject([{ sessionId, title: 'secret-title' }]);
        const [run] = (await store.runs?.listRuns(scope)) ?? [];
        expect(run).toMatchObject({ context: { who: 'secret-context' } });
        expect(await store.maintenance?.verify()).toEqual([]);
        await store.close?.();
        expect(await dump()).not.toContain('secret-');
      });
    });

    test('S230: a claim may be the first call to a store', async () => {
      await using(async ({ open }) => {
        const first = open({ key: oldKey });
        await first.open?.();
        await first.close?.();
        const store = open({ key: oldKey });
        await store.runs?.claim(
          { agent: 'a' },
          {
            runId: '01900000-0000-7000-8000-000000000002',
            sessionId: 's',
            from: 'head',
            mode: 'accepted',
            inputs: [],
            context: { who: 'ada' },
            ttl: 60_000,
            worker: 'w',
          },
        );
        expect(await store.runs?.listRuns({ agent: 'a' })).toMatchObject([
          { context: { who: 'ada' } },
        ]);
        await store.close?.();
      });
    });

    test('what is the same is still stored once', async () => {
      await using(async ({ open, documents }) => {
        const store = open({ key: oldKey });
        await store.open?.();
        for (let n = 0; n < 5; n++) await createTurns(store).take(1, secret);
        // A custom state, a list of artifacts, a large part, data.
        expect(await documents()).toBe(4);
        await store.close?.();
      });
    });

    test('a missing or a wrong key is a clear error, before anything is read', async () => {
      await using(async ({ open }) => {
        const store = open({ key: oldKey });
        await fill(store);
        await store.close?.();
        const without = open();
        await expect(without.open?.()).rejects.toMatchObject({
          status: 'FAILED_PRECONDITION',
          message: expect.stringContaining('encrypted'),
        });
        const wrong = open({ key: newKey });
        await expect(wrong.open?.()).rejects.toMatchObject({
          status: 'FAILED_PRECONDITION',
          message: expect.stringMatching(/encrypted under key [0-9a-f]{16}.*encryption\.keys/),
        });
        await Promise.all([without.close?.(), wrong.close?.()]);
      });
    });

    test('a key that is none is refused at once', async () => {
      await using(async ({ open }) => {
        for (const key of ['', 'short', new Uint8Array(16), 'z'.repeat(64)]) {
          expect(() => open({ key })).toThrow(/32 bytes/);
          expect(() => open({ keys: [oldKey, key] })).toThrow(/32 bytes/);
        }
      });
    });

    test('keys are rotated while the store is in use; the old one is then of no use', async () => {
      await using(async ({ open }) => {
        const first = open({ key: oldKey });
        const { scope, sessionId } = await fill(first);
        await first.close?.();
        const both = open({ keys: [newKey, oldKey] });
        expect((await both.getSnapshot(scope, { sessionId }))?.label).toBe('secret-label');
        expect(await both.rotateKeys()).toBeGreaterThan(8);
        expect(await both.rotateKeys()).toBe(0);
        await both.close?.();
        const after = open({ key: newKey });
        const read = await after.getSnapshot(scope, { sessionId });
        expect(JSON.stringify(read?.state)).toContain('secret-part 2');
        const [run] = (await after.runs?.listRuns(scope)) ?? [];
        expect(run).toMatchObject({ context: { who: 'secret-context' } });
        const step = run && (await after.runs?.getStep(run, 'secret-step'));
        expect(step).toEqual({ value: 'secret-result' });
        expect(await after.maintenance?.verify()).toEqual([]);
        await after.close?.();
        const old = open({ key: oldKey });
        await expect(old.open?.()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
        await old.close?.();
      });
    });

    test('a store that was open is sealed by a rotation', async () => {
      await using(async ({ open, dump }) => {
        const plain = open();
        const { scope, sessionId } = await fill(plain);
        await plain.close?.();
        expect(await dump()).toContain('secret-message');
        expect(await dump()).toMatch(/secret-data|7365637265742d64617461/);
        const store = open({ key: oldKey });
        await store.rotateKeys();
        const read = await store.getSnapshot(scope, { sessionId });
        expect(JSON.stringify(read?.state)).toContain('secret-message 2');
        expect(await store.maintenance?.verify()).toEqual([]);
        await store.close?.();
        expect(await dump()).not.toMatch(/secret-|7365637265742d64617461/);
      });
    });
  });
}
