import { cp } from 'node:fs/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { emptyState, hashState, type SessionState } from '../../src/session/session-state.ts';
import type { Fault, Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { createKit, exchange, type Kit, texts } from '../../src/testing/store-contract/kit.ts';
import { readTree } from '../support/read-tree.ts';
import { dieAfter } from './file-intercept.ts';
import { temporaryDirectory } from './file-support.ts';

const scope = { agent: 'chat' };
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function directory(from?: string): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  cleanups.push(remove);
  if (from !== undefined) await cp(from, path, { recursive: true });
  return path;
}

function open(path: string): Kit {
  const store: Store = fileStore(path, { durability: 'normal' });
  cleanups.push(async () => store.close?.());
  return createKit({ store, close: async () => {} }, scope);
}

/** Everything that can be read of a store, but for times; the same ids have the same numbers. */
async function contents({ timeline, store }: Kit): Promise<unknown> {
  const numbers = new Map<string | undefined, number>([[undefined, -1]]);
  const numberOf = (id: string | undefined): number | undefined => {
    if (!numbers.has(id)) numbers.set(id, numbers.size);
    return numbers.get(id);
  };
  const { items } = await timeline.listSessions(scope, { limit: 1000 });
  const sessions = items.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
  const found: unknown[] = [];
  for (const { sessionId, title, headId } of sessions) {
    const options = { includeOrphaned: true, limit: 1000 };
    const snapshots = (await timeline.listSnapshots(scope, sessionId, options)).items;
    const states = [];
    for (const { snapshotId, status, index, parentId, orphaned } of snapshots) {
      const state = (await store.getSnapshot(scope, { snapshotId }))?.state;
      const { custom, artifacts } = state ?? {};
      const ids = [numberOf(snapshotId), numberOf(parentId)];
      states.push({ ids, index, orphaned, status, texts: texts(state), custom, artifacts });
    }
    const head = (await store.getSnapshot(scope, { sessionId }))?.state;
    found.push({ sessionId, title, head: [numberOf(headId), ...texts(head)], states });
  }
  return found;
}

// So long that its text is kept in chunks.
const long = Array.from({ length: 7_000 }, (_, at) => (at * 7919) % 10_007).join(' ');

const withArtifact = (state: SessionState, text: string): SessionState => ({
  ...exchange(state, text),
  artifacts: [
    { name: text, parts: [{ text: `an artifact of ${text}` }] },
    { name: `long ${text}`, parts: [{ text: `${long} of the long artifact of ${text}` }] },
  ],
});

/** Two sessions with a few turns, artifacts and forks, and a few names for what is in them. */
async function prepare(kit: Kit): Promise<{ first: string; second: string }> {
  const first = await kit.turn('s', { state: withArtifact(emptyState, 'one') });
  const second = await kit.turn('s', { state: withArtifact(first.base.state, 'two') });
  await kit.timeline.fork(scope, first.snapshot.snapshotId, {
    sessionId: 'f',
    snapshotId: kit.id(),
  });
  await kit.turn('f', { text: 'in the fork' });
  await kit.turn('t', {
    text: 'elsewhere',
    request: { startedBy: { agent: 'chat', sessionId: 's' } },
  });
  return { first: first.snapshot.snapshotId, second: second.snapshot.snapshotId };
}

type Names = Awaited<ReturnType<typeof prepare>>;

interface Scenario {
  /** What there is besides, before it. */
  readonly more?: (kit: Kit) => Promise<void>;
  /** What is done; all ids that it makes come from `ids`, so that two runs of it give the same. */
  readonly act: (kit: Kit, names: Names, ids: readonly string[]) => Promise<unknown>;
  /** Between before and after there are steps that can be seen; doing it again completes it. */
  readonly inSteps?: boolean;
  /** What must be nowhere on the disk after it. */
  readonly gone?: readonly string[];
}

const scenarios: Record<string, Scenario> = {
  'a turn': {
    act: async (kit, _, [runId = '']) => {
      const held = await kit.claim('s', { runId, ttl: 1 });
      await kit.commit(held, { text: 'three' });
    },
  },
  'the first turn of a session, with an artifact': {
    act: async (kit, _, [runId = '']) => {
      const held = await kit.claim('n', { runId, ttl: 1 });
      await kit.commit(held, { state: withArtifact(emptyState, 'new') });
    },
    inSteps: true,
  },
  'a turn with a checkpoint and a snapshot in the middle': {
    act: async (kit, { second }, [runId = '', middle = '']) => {
      const held = await kit.claim('s', { runId, mode: 'accepted', ttl: 1 });
      const base = await kit.runs.load(scope, { snapshotId: second });
      const state = withArtifact(base?.state ?? emptyState, 'checkpoint');
      const write = { state, stateHash: hashState(state), inputsDone: 0, midTurn: true };
      await kit.runs.checkpoint(held, { ...write, ...(base && { base }) });
      const event = 'toolIterationEnd';
      const { base: next } = await kit.commit(held, {
        snapshotId: middle,
        state,
        event,
        end: false,
      });
      await kit.commit(held, { base: next, parentId: middle, text: 'end' });
    },
    inSteps: true,
  },
  'a state that is not listed, and what replaces it': {
    act: async (kit, _, [one = '', two = '']) => {
      const held = await kit.claim('s', { runId: one, ttl: 1 });
      const { base } = await kit.commit(held, {
        state: withArtifact(emptyState, 'unlisted'),
        listed: false,
      });
      const next = await kit.claim('s', { runId: two, ttl: 1 });
      await kit.commit(next, {
        base,
        parentId: base.snapshotId,
        state: exchange(emptyState, 'listed'),
      });
    },
    inSteps: true,
  },
  'a detached run and its abort': {
    act: async (kit, _, [runId = '']) => {
      const held = await kit.claim('s', { runId, ttl: 1 });
      await kit.runs.detach(held, { mode: 'detached', inputs: [] });
      await kit.abort.abortSnapshot(scope, runId);
    },
    inSteps: true,
  },
  'accepting a background run in a new session': {
    act: (kit, _, [runId = '']) => kit.claim('n', { runId, mode: 'detached' }),
    inSteps: true,
  },
  'a fork': {
    act: ({ timeline }, { second }, [snapshotId = '']) =>
      timeline.fork(scope, second, { sessionId: 'g', snapshotId }),
  },
  'a restore': { act: ({ timeline }, { first }) => timeline.restore(scope, first) },
  'a title': { act: ({ timeline }) => timeline.updateSession(scope, 's', { title: 'a title' }) },
  pruning: {
    act: ({ maintenance }) => maintenance.prune({ keepLast: 1 }),
    inSteps: true,
  },
  'pruning a session that is rewritten in several portions': {
    more: async (kit) => {
      for (let no = 0; no < 140; no++) {
        const state = no % 10 === 0 ? { state: withArtifact(emptyState, `part ${no}.`) } : {};
        await kit.turn('u', { text: `turn ${no}`, ...state });
      }
    },
    act: ({ maintenance }) => maintenance.prune({ keepLast: 75 }),
    inSteps: true,
    gone: ['artifact of part 10.', 'artifact of part 20.'],
  },
  'deleting old sessions, but not a fork that shares with one of them': {
    act: ({ maintenance }) =>
      maintenance.prune({ olderThan: 0, dropSessions: true, keepSessions: ['f'] }),
    inSteps: true,
    gone: ['TWO', 'artifact of two', 'elsewhere'],
  },
  'deleting old sessions with their forks': {
    act: ({ maintenance }) => maintenance.prune({ olderThan: 0, dropSessions: true }),
    inSteps: true,
    gone: ['ONE', 'TWO', 'artifact of', 'elsewhere', 'f.json'],
  },
  'erasing a session that shares with a fork, and its sub-session': {
    act: ({ timeline }) => timeline.deleteSession(scope, 's'),
    inSteps: true,
    gone: ['TWO', 'artifact of two', 'elsewhere'],
  },
  'erasing a fork': {
    act: ({ timeline }) => timeline.deleteSession(scope, 'f'),
    gone: ['in the fork', 'f.json'],
  },
  'an import': {
    act: async ({ maintenance }) => {
      const document = await maintenance.exportSession(scope, 's');
      if (document !== undefined)
        await maintenance.importSession(scope, document, { sessionId: 'i' });
    },
  },
};

/** Half a line says that it is one; nothing else may be wrong. */
const isWrong = ({ kind }: Fault): boolean => kind !== 'unfinished';

describe('whenever a process dies', () => {
  for (const [name, { more, act, inSteps = false, gone = [] }] of Object.entries(scenarios)) {
    test(`in the middle of ${name}, what is there is whole`, async () => {
      const start = await directory();
      const names = await prepare(open(start));
      await more?.(open(start));
      const ids = [open(start).id(), open(start).id()];
      const before = await contents(open(start));
      const done = await directory(start);
      await act(open(done), names, ids);
      const after = await contents(open(done));
      const seen = new Set<string>();
      for (let changes = 0; ; changes++) {
        const path = await directory(start);
        const kit = open(path);
        await kit.timeline.listSessions(scope);
        const died = await dieAfter(changes, () => act(kit, names, ids));
        const next = open(path);
        const faults = await next.maintenance.verify();
        expect(died ? faults.filter(isWrong) : faults, `after ${changes} changes`).toEqual([]);
        const found = await contents(next);
        seen.add(JSON.stringify(found));
        if (!inSteps) expect([before, after]).toContainEqual(found);
        if (!died) {
          expect(found).toEqual(after);
          break;
        }
        // It may have happened already; but no file that the dead process left may be in the way.
        const refusal = await act(open(path), names, ids).then(String, String);
        expect(refusal, `after ${changes} changes`).not.toMatch(/changed by something/);
        const left = (await open(path).maintenance.verify()).filter(isWrong);
        expect(left, `again after ${changes} changes`).toEqual([]);
        if (gone.length > 0) {
          expect(await contents(open(path))).toEqual(after);
          const files = JSON.stringify([...(await readTree(path))]);
          for (const text of gone) expect(files).not.toContain(text);
        }
        await kit.store.close?.();
        await next.store.close?.();
      }
      expect(seen.size).toBeGreaterThan(1);
      expect(seen).toContain(JSON.stringify(before));
    });
  }
});
