import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { memoryStore, systemClock, waymark } from '../../src/index.ts';
import { textOf } from '../../src/protocol/messages.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { memoryIn } from './support/memory-behaviour.ts';

/** `MEMORY_STEPS=10000` looks longer. */
const steps = Number(process.env.MEMORY_STEPS ?? 300);

interface Known {
  readonly id: string;
  readonly session: string;
  /** The entries on its path. */
  readonly path: ReadonlySet<string>;
  /** How many entries there were when it was saved. */
  readonly at: number;
}

interface Owner {
  readonly sessions: Map<string, { readonly family: string; head: Known }>;
  readonly snapshots: Known[];
  /** Entries and their sessions. */
  readonly entries: Map<string, { readonly session: string; readonly at: number }>;
}

function randomFrom(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** Turns, forks, restores and deletions in any order, compared with what each reader should see. */
async function wander(store: Store, seed: number, count: number): Promise<number> {
  const next = randomFrom(seed);
  const model = scriptedModel({
    patterns: [
      [/^learn (\S+)/, ([, text]) => ({ toolCalls: [{ name: 'remember', input: { text } }] })],
    ],
    otherwise: 'ok',
    afterTools: () => 'ok',
  });
  const app = waymark({ model, store });
  const facts = app.defineMemory({ name: 'facts', schema: z.object({ text: z.string() }) });
  const agent = app.defineAgent({ name: 'agent', memory: facts });
  const owners = new Map<string, Owner>(
    ['ann', 'bob'].map((name) => [
      name,
      { sessions: new Map(), snapshots: [], entries: new Map() },
    ]),
  );
  let made = 0;
  let looked = 0;
  const live = (owner: Owner, path: Iterable<string>): string[] =>
    [...path].filter((each) => owner.entries.has(each));
  const seenElsewhere = (owner: Owner, family: string | undefined, at: number): string[] =>
    [...owner.sessions.values()]
      .filter((each) => each.family !== family)
      .flatMap(({ head }) => [...head.path])
      .filter((each) => (owner.entries.get(each)?.at ?? Number.POSITIVE_INFINITY) <= at);
  const sorted = (texts: Iterable<string>): string[] => [...new Set(texts)].sort();
  for (let step = 0; step < count; step++) {
    const [name, owner] = [...owners][next(2)] ?? expect.fail('no owner');
    const where = { owner: name };
    const from = owner.snapshots[next(owner.snapshots.length)];
    const choice = next(10);
    if (choice < 5 || from === undefined) {
      const session = [...owner.sessions.keys()][next(owner.sessions.size + 1)];
      const base = session === undefined ? undefined : owner.sessions.get(session)?.head;
      const learns = next(3) > 0;
      const text = `${name}-${made++}`;
      const input = learns ? `learn ${text}` : 'hello';
      const before = model.requests.length;
      const { sessionId, snapshotId: id = '' } = await agent.run(input, {
        ...where,
        ...(session !== undefined && { sessionId: session }),
      });
      const family = session === undefined ? sessionId : owner.sessions.get(session)?.family;
      const told = memoryIn(model.requests[before]?.messages) ?? '';
      const given = [...told.matchAll(/"text":"([^"]+)"/g)].map(([, each = '']) => each);
      const all = sorted([
        ...live(owner, base?.path ?? []),
        ...live(owner, seenElsewhere(owner, family, made)),
      ]);
      // At most twenty are given.
      expect(given.filter((each) => !all.includes(each))).toEqual([]);
      expect(given).toHaveLength(Math.min(20, all.length));
      expect(textOf(model.requests[before]?.messages.at(-1))).toBe(input);
      const path = new Set([...(base?.path ?? []), ...(learns ? [text] : [])]);
      if (learns) owner.entries.set(text, { session: sessionId, at: made });
      const head = { id, session: sessionId, path, at: made };
      owner.snapshots.push(head);
      owner.sessions.set(sessionId, { family: family ?? sessionId, head });
    } else if (choice < 7) {
      await agent.restore(from.id, where);
      const session = owner.sessions.get(from.session) ?? expect.fail('no session');
      session.head = from;
    } else if (choice < 9) {
      const { snapshotId: id, sessionId } = await agent.fork(from.id, where);
      const head = { id, session: sessionId, path: from.path, at: ++made };
      const { family } = owner.sessions.get(from.session) ?? expect.fail('no session');
      owner.snapshots.push(head);
      owner.sessions.set(sessionId, { family, head });
    } else {
      await agent.deleteSession(from.session, where);
      owner.sessions.delete(from.session);
      for (const [text, { session }] of owner.entries) {
        if (session === from.session) owner.entries.delete(text);
      }
      owner.snapshots.splice(
        0,
        owner.snapshots.length,
        ...owner.snapshots.filter(({ session }) => session !== from.session),
      );
    }
    if (next(4) > 0) continue;
    looked++;
    const list = async (asOf?: string): Promise<string[]> => {
      const options = { ...where, limit: 10_000, ...(asOf !== undefined && { asOf }) };
      return sorted((await facts.list(options)).items.map(({ value }) => value.text));
    };
    expect(await list()).toEqual(sorted(live(owner, seenElsewhere(owner, undefined, made))));
    const past = owner.snapshots[next(owner.snapshots.length)];
    if (past === undefined) continue;
    const family = owner.sessions.get(past.session)?.family;
    const seen = await list(past.id);
    const own = live(owner, past.path);
    const others = live(owner, seenElsewhere(owner, family, past.at));
    expect(seen).toEqual(sorted([...own, ...others]));
  }
  await app.close();
  return looked;
}

/** A clock that moves with each look at it, so that no two snapshots are of the same moment. */
function tickingClock() {
  let now = Date.parse('2026-01-01T00:00:00Z');
  return { now: () => ++now };
}

test('S825 after any forks, restores and deletions, no reader sees another path, owner or time', async () => {
  const clock = { ...systemClock, ...tickingClock() };
  const each = 100;
  let looked = 0;
  for (let run = 0; run * each < steps; run++) {
    looked += await wander(memoryStore({ clock }), 1 + run, each);
  }
  expect(looked).toBeGreaterThan(steps / 10);
});

test('S825 SQLite shows the same after any forks, restores and deletions', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-memory-'));
  const clock = { ...systemClock, ...tickingClock() };
  try {
    for (let run = 0; run * 100 < steps; run++) {
      await wander(sqliteStore(join(folder, `${run}.db`), { clock }), 1_000 + run, 100);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
