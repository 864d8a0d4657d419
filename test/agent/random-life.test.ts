import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { Input, Output } from '../../src/protocol/turn.ts';
import { always, never, on, type SnapshotPolicy } from '../../src/session/policy.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import {
  hasText,
  must,
  openApp,
  say,
  type TestApp,
  told,
  unexpected,
  until,
} from './support/kit.ts';
import { expectValid } from './support/valid.ts';

/** What is done next; the numbers choose among what there is. */
type Deed = { readonly kind: Kind; readonly session: number; readonly snapshot: number };
type Kind =
  | 'say'
  | 'sayAt'
  | 'sayTwice'
  | 'fail'
  | 'stop'
  | 'note'
  | 'ask'
  | 'answer'
  | 'detach'
  | 'detachFail'
  | 'detachAbort'
  | 'fork'
  | 'restore'
  | 'label'
  | 'delete'
  | 'restart';

const kinds: readonly Kind[] = [
  'say',
  'say',
  'sayAt',
  'sayTwice',
  'fail',
  'stop',
  'note',
  'ask',
  'answer',
  'detach',
  'detachFail',
  'detachAbort',
  'fork',
  'restore',
  'label',
  'delete',
  'restart',
];

interface Life {
  readonly policy: 'default' | 'always' | 'never' | 'some';
  readonly deeds: readonly Deed[];
}

const lives: fc.Arbitrary<Life> = fc.record({
  policy: fc.constantFrom('default', 'always', 'never', 'some'),
  deeds: fc.array(
    fc.record({ kind: fc.constantFrom(...kinds), session: fc.nat(5), snapshot: fc.nat(20) }),
    { minLength: 1, maxLength: 25 },
  ),
});

/** A session as it should be. */
interface Expected {
  readonly id: string;
  said: readonly string[];
  /** The snapshots that are known, with what was said by then. */
  readonly snapshots: Map<string, readonly string[]>;
  isAsked: boolean;
  /** The snapshot at the head, if it is one. */
  headId: string | undefined;
  /** Snapshots that something goes on from: an interrupt there has its answer. */
  readonly goneOn: Set<string>;
}

const policies: Record<Life['policy'], SnapshotPolicy> = {
  default: on('turnEnd', 'invocationEnd'),
  always,
  never,
  some: ({ turnIndex }) => turnIndex % 2 === 0,
};

const ask = { name: 'ask', ref: 'r' };
const answered = { resume: { respond: [{ toolResponse: { ...ask, output: 'yes' } }] } };

function define(app: TestApp, policy: Life['policy']): Agent {
  const interrupt = app.defineInterrupt({ name: 'ask', description: 'Asks.' });
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
    session?.setCustom({ notes: ((session.custom as { notes: number }).notes ?? 0) + 1 });
    session?.addArtifacts({ name: 'note', parts: [{ text: `${session.messages.length}` }] });
    return 'noted';
  });
  const model = scriptedModel({
    patterns: [
      [/^fail/, { text: 'half', error: new Error('on purpose') }],
      [/^stop/, { chunks: ['half'], hang: true }],
      [/^note/, { toolCalls: [{ name: 'note', ref: 'n' }] }],
      [/^ask/, { toolCalls: [ask] }],
      [/.*/, ([text]) => `re ${text}`],
    ],
    afterTools: () => 'thanks',
    otherwise: 'x',
  });
  return app.defineAgent({
    name: 'chat',
    model,
    tools: [interrupt, note],
    initialState: { notes: 0 },
    snapshot: policies[policy],
  }) as unknown as Agent;
}

/** What a turn adds to what was said. */
function after(text: string): string[] {
  if (text.startsWith('note'))
    return [`user: ${text}`, 'model: [note?]', 'tool: [note!]', 'model: thanks'];
  if (text.startsWith('ask')) return [`user: ${text}`, 'model: [ask?]'];
  if (text.startsWith('stop')) return [`user: ${text}`, 'model: half'];
  return [`user: ${text}`, `model: re ${text}`];
}

class World {
  readonly sessions: Expected[] = [];
  readonly #policy: Life['policy'];
  readonly #open: () => Store;
  #app: TestApp;
  agent: Agent;
  #count = 0;

  constructor(policy: Life['policy'], open: () => Store) {
    this.#policy = policy;
    this.#open = open;
    this.#app = openApp({ store: open() });
    this.agent = define(this.#app, policy);
  }

  get store(): Store {
    return this.#app.store as Store;
  }

  async restart(): Promise<void> {
    await this.close();
    this.#app = openApp({ store: this.#open() });
    this.agent = define(this.#app, this.#policy);
  }

  async close(): Promise<void> {
    expect(unexpected(this.#app)).toEqual([]);
    await this.#app.close();
  }

  async live({ kind, session: at, snapshot: which }: Deed): Promise<void> {
    const session = this.sessions[at % Math.max(1, this.sessions.length)];
    if (session === undefined || (kind === 'say' && at === 0)) {
      await this.begin();
      return;
    }
    const ids = [...session.snapshots.keys()];
    const snapshotId = ids[which % Math.max(1, ids.length)];
    await this.do(kind, session, snapshotId);
    await this.check(session);
  }

  async begin(): Promise<void> {
    const text = `hello ${this.#count++}`;
    const output = (await this.agent.runText(text, { throwOnError: false })) as Output;
    const session: Expected = {
      id: output.sessionId,
      said: [],
      snapshots: new Map(),
      isAsked: false,
      headId: undefined,
      goneOn: new Set(),
    };
    this.sessions.push(session);
    this.took(session, after(text), output);
    await this.check(session);
  }

  /** A turn has been saved. */
  took(session: Expected, added: readonly string[], output: Output): void {
    const declined = session.isAsked && added[0]?.startsWith('user:') ? ['tool: [ask!]'] : [];
    session.said = [...session.said, ...declined, ...added];
    session.isAsked = session.said.at(-1) === 'model: [ask?]';
    if (session.headId !== undefined) session.goneOn.add(session.headId);
    session.headId = output.snapshotId;
    if (output.snapshotId !== undefined) session.snapshots.set(output.snapshotId, session.said);
  }

  /** The head has been moved to a snapshot. */
  moved(session: Expected, snapshotId: string): void {
    session.said = must(session.snapshots.get(snapshotId));
    session.isAsked = session.said.at(-1) === 'model: [ask?]';
    session.headId = snapshotId;
  }

  async do(kind: Kind, session: Expected, snapshotId: string | undefined): Promise<void> {
    const { agent } = this;
    const sessionId = session.id;
    const text = `${kind} ${this.#count++}`;
    const run = async (input: Input, init: object = { sessionId }): Promise<Output> =>
      (await agent.run(input, { ...init, throwOnError: false })) as Output;
    switch (kind) {
      case 'say':
      case 'note':
      case 'ask':
        this.took(session, after(text), await run(say(text)));
        return;
      case 'sayAt': {
        if (snapshotId === undefined) return;
        const output = await run(say(text), { snapshotId });
        this.moved(session, snapshotId);
        this.took(session, after(text), output);
        return;
      }
      case 'sayTwice': {
        const connection = agent.streamBidi({ sessionId });
        await connection.sendText(text);
        await connection.sendText('again');
        const output = (await connection.output()) as Output;
        this.took(session, after(text), { sessionId });
        this.took(session, after('again'), output);
        return;
      }
      case 'fail':
        expect(await run(say(text))).toMatchObject({ finishReason: 'failed' });
        return;
      case 'stop': {
        const connection = agent.streamBidi({ sessionId });
        await connection.sendText(text);
        await until(connection.receive(), hasText);
        connection.abort();
        const output = (await connection.output()) as Output;
        expect(output.finishReason).toBe('aborted');
        this.took(session, after(text), output);
        return;
      }
      case 'answer':
        if (session.isAsked && !session.goneOn.has(session.headId ?? '')) {
          this.took(session, ['tool: [ask!]', 'model: thanks'], await run(answered));
        } else await expect(run(answered)).rejects.toMatchObject({ name: 'WaymarkError' });
        return;
      case 'detach':
      case 'detachFail':
      case 'detachAbort': {
        const said = { detach: text, detachFail: `fail ${text}`, detachAbort: `stop ${text}` }[
          kind
        ];
        const output = await run({ ...say(said), detach: true });
        const id = must(output.snapshotId);
        if (kind === 'detachAbort') expect(await agent.abort(id)).toBe('aborted');
        const { status } = await agent.wait(id);
        expect(status).toBe(
          { detach: 'succeeded', detachFail: 'failed', detachAbort: 'aborted' }[kind],
        );
        if (kind === 'detach') this.took(session, after(said), output);
        return;
      }
      case 'fork': {
        if (snapshotId === undefined) return;
        const said = must(session.snapshots.get(snapshotId));
        const fork = await agent.fork(snapshotId);
        this.sessions.push({
          id: fork.sessionId,
          said,
          snapshots: new Map([[fork.snapshotId, said]]),
          isAsked: said.at(-1) === 'model: [ask?]',
          headId: fork.snapshotId,
          goneOn: new Set(),
        });
        return;
      }
      case 'restore': {
        if (snapshotId === undefined) return;
        await agent.restore(snapshotId);
        this.moved(session, snapshotId);
        return;
      }
      case 'label':
        if (snapshotId !== undefined) await agent.label(snapshotId, text);
        return;
      case 'delete':
        expect(await agent.deleteSession(sessionId)).toBe(true);
        this.sessions.splice(this.sessions.indexOf(session), 1);
        return;
      case 'restart':
        await this.restart();
        return;
    }
  }

  async check(session: Expected): Promise<void> {
    const { agent } = this;
    const found = await agent.getSession(session.id);
    if (!this.sessions.includes(session)) {
      expect(found).toBeUndefined();
      return;
    }
    expect(told(found?.state?.messages)).toEqual(session.said);
    expect(found?.running).toBeUndefined();
    if (!session.isAsked) expectValid(found?.state?.messages ?? []);
    for (const [snapshotId, said] of session.snapshots) {
      const snapshot = await agent.getSnapshot({ snapshotId });
      expect(told(snapshot?.state?.messages)).toEqual(said);
      expect(snapshot?.status).toBe('succeeded');
    }
    const { items } = await agent.listSnapshots(session.id, { includeOrphaned: true, limit: 500 });
    const indexes = items.map(({ index }) => index);
    expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    expect(new Set(indexes).size).toBe(indexes.length);
    // The active ones are a line from the head to the root.
    const active = items.filter(({ orphaned, status }) => !orphaned && status === 'succeeded');
    active.forEach(({ parentId }, place) => {
      expect(parentId).toBe(active[place - 1]?.snapshotId);
    });
  }
}

async function liveThrough(life: Life, open: () => Store): Promise<void> {
  const world = new World(life.policy, open);
  for (const deed of life.deeds) await world.live(deed);
  for (const session of world.sessions) await world.check(session);
  expect(await world.store.maintenance?.verify()).toEqual([]);
  await world.close();
}

const times = process.env.LONG === '1' ? 150 : 60;

test('S75 S70 S26 whatever happens to sessions, what is read is what was said, in memory', async () => {
  await fc.assert(
    fc.asyncProperty(lives, async (life) => {
      const store = memoryStore();
      await liveThrough(life, () => store);
    }),
    { numRuns: times },
  );
});

test('S75 S70 S26 whatever happens to sessions, what is read is what was said, in SQLite', async () => {
  await fc.assert(
    fc.asyncProperty(lives, async (life) => {
      const folder = await mkdtemp(join(tmpdir(), 'waymark-life-'));
      try {
        await liveThrough(life, () => sqliteStore(join(folder, 'life.db')));
      } finally {
        await rm(folder, { recursive: true });
      }
    }),
    { numRuns: Math.ceil(times / 4) },
  );
});
