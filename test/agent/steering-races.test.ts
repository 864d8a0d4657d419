import { afterAll, expect, test } from 'vitest';
import { isWaymarkError } from '../../src/core/error.ts';
import type { Message } from '../../src/protocol/message.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { must, openApp, type TestApp, unexpected } from './support/kit.ts';
import { mortalStore } from './support/mortal-store.ts';

/** The same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return ((state >>> 8) ^ state) % below;
  };
}

const rounds = process.env.LONG === '1' ? 300 : 40;
const claimTtl = 60_000;
type Agent = ReturnType<TestApp['defineAgent']>;

/** What becomes of messages that a turn has not taken. */
type Mode = 'reject' | 'wait';

function define(app: TestApp, concurrency: Mode): Agent {
  const work = app.defineTool({ name: 'work', description: 'Works.' }, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return 'done';
  });
  const model = scriptedModel({
    patterns: [[/^work/, { toolCalls: [{ name: 'work' }] }]],
    otherwise: 'ok',
  });
  return app.defineAgent({ name: 'chat', model, tools: [work], concurrency });
}

const pause = async (ticks: number): Promise<void> => {
  for (let at = 0; at < ticks; at++) await new Promise((resolve) => setImmediate(resolve));
};

type Fate = Awaited<ReturnType<Agent['steer']>>['status'] | 'refused';

/** What became of a message, as its sender finds out after the turn. */
async function fateOf(agent: Agent, runId: string, id: string): Promise<Fate> {
  try {
    return (await agent.steer(runId, id, { requestId: id })).status;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'FAILED_PRECONDITION') return 'refused';
    throw error;
  }
}

function usersTexts(
  state: { readonly messages?: readonly Message[] | undefined } | undefined,
): readonly string[] {
  return (state?.messages ?? []).flatMap(({ role, content }) =>
    role === 'user' ? content.flatMap((part) => ('text' in part ? part.text : [])) : [],
  );
}

/** Runs the session's next turn, and returns what users have said in the conversation then. */
async function nextTurn(agent: Agent, runId: string): Promise<readonly string[]> {
  const { sessionId } = must(await agent.getSnapshot(runId));
  await agent.run('the next turn', { sessionId });
  return usersTexts((await agent.getSnapshot({ sessionId }))?.state);
}

/** Races one turn, and returns what became of the messages that it had accepted. */
async function race(
  seed: number,
  store: Store,
  mode: Mode,
  advance: (ms: number) => void | Promise<void>,
): Promise<readonly string[]> {
  const random = randomOf(seed);
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock: clockOf(store) });
  await using second = openApp({ store, claimTtl, clock: clockOf(store) });
  const chat = define(first, mode);
  const other = define(second, mode);
  const isDetached = random(2) === 0;
  const text = random(2) === 0 ? 'work' : 'talk';
  const caller = new AbortController();
  const started = isDetached
    ? (await chat.start(text)).id
    : await new Promise<string>((resolve) => {
        void (async () => {
          const turn = chat.streamText(text, { accept: true, signal: caller.signal });
          for await (const { turnStart } of turn.stream) resolve(turnStart?.snapshotId ?? '');
        })().catch(() => {});
      });
  const ids = Array.from({ length: 1 + random(4) }, (_, at) => `${seed}-${at}`);
  const accepted = new Set<string>();
  const steering = ids.map(async (id) => {
    await pause(random(12));
    const agent = random(2) === 0 ? chat : other;
    if (agent === chat && random(2) === 0) return;
    await other.steer(started, id, { requestId: id }).then(
      () => accepted.add(id),
      () => {},
    );
  });
  const end = random(3);
  await pause(random(10));
  if (end === 1) {
    if (isDetached) await other.abort(started);
    else caller.abort();
  } else if (end === 2) {
    line.cut();
    await advance(2 * claimTtl);
  }
  await Promise.all(steering);
  // The next poll would be too far away.
  if (end === 2) await second.engine.recover();
  const { state } = await other.wait(started);
  await line.heal();
  await pause(20);
  const after = (await other.getSnapshot(started)) ?? { state };
  const said = usersTexts(after.state);
  const conversation = mode === 'wait' ? await nextTurn(other, started) : said;
  const fates: string[] = [];
  for (const id of ids) {
    const times = conversation.filter((each) => each === id).length;
    const fate = await fateOf(other, started, id);
    if (accepted.has(id)) fates.push(said.includes(id) ? fate : `${fate} later`);
    expect({ id, times }, `seed ${seed}`).toEqual({ id, times: fate === 'taken' ? 1 : 0 });
    if (!accepted.has(id)) expect(fate, `seed ${seed}`).toBe('refused');
    // Nothing that a turn has accepted is dropped when it ends by itself.
    else if (end === 0 || mode === 'wait') expect(fate, `seed ${seed}`).toBe('taken');
  }
  expect(unexpected(first), `seed ${seed}`).toEqual([]);
  expect(unexpected(second), `seed ${seed}`).toEqual([]);
  return fates;
}

const clocks = new WeakMap<Store, ReturnType<typeof movableClock>['clock']>();
function clockOf(store: Store): ReturnType<typeof movableClock>['clock'] {
  return clocks.get(store) ?? movableClock().clock;
}

test.each([
  ['memory', 'reject'],
  ['memory', 'wait'],
  ['sqlite', 'reject'],
  ['sqlite', 'wait'],
] as const)(
  'S400 S401 S404 S406 S530 steering against the end, an abort and a takeover: each message is taken once or refused (%s, %s)',
  async (name, mode) => {
    const fates: string[] = [];
    // A round on SQLite takes thirty times as long as one in memory.
    const last = name === 'memory' ? rounds : rounds * 0.3;
    for (let seed = 1; seed <= last; seed++) {
      const { clock, advance } = movableClock();
      const store: Store =
        name === 'memory' ? memoryStore({ clock }) : sqliteStore(':memory:', { clock });
      clocks.set(store, clock);
      fates.push(...(await race(seed, store, mode, advance)));
      await store.close?.();
    }
    // The moments differ enough for both to happen.
    expect(fates).toContain('taken');
    expect(fates).toContain(mode === 'wait' ? 'taken later' : 'refused later');
  },
);

let postgres: TestPostgres | undefined;
let schemas: CleanSchemas | undefined;
let database: PostgresClock | undefined;
afterAll(async () => {
  await database?.close();
  await schemas?.close();
  await postgres?.stop();
});

test('S400 S401 S404 S406 S530 the same over Postgres', async () => {
  postgres = await startPostgres();
  database = await postgresClock(postgres.connectionString);
  schemas = cleanSchemas(postgres.connectionString);
  const { connectionString, advance } = database;
  const fates: string[] = [];
  const schema = schemas.take();
  for (let seed = 1; seed <= rounds / 10; seed++) {
    const store = postgresStore({ connectionString, schema, max: 4 });
    fates.push(...(await race(seed, store, seed % 2 === 0 ? 'wait' : 'reject', advance)));
    await store.close?.();
  }
  await schemas.giveBack(schema);
  if (rounds > 100) expect(fates).toContain('taken');
});
