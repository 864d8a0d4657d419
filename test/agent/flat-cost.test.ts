import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { AgentConnection } from '../../src/api/types.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { must, openApp, type TestApp } from './support/kit.ts';

/** Work that grows with what it is done on, counted by its name. */
const work = vi.hoisted(() => {
  const counts = new Map<string, number>();
  const add = (name: string, amount = 1): void => {
    counts.set(name, (counts.get(name) ?? 0) + amount);
  };
  return { counts, add };
});

// Not mocks: the real functions, counted.
vi.mock('../../src/core/json/hash.ts', async (original) => {
  const real = await original<typeof import('../../src/core/json/hash.ts')>();
  return {
    ...real,
    sha256: (text: string) => {
      work.add('hashed bytes', text.length);
      return real.sha256(text);
    },
    contentHash: (value: Parameters<typeof real.contentHash>[0]) => {
      work.add('content hashes');
      return real.contentHash(value);
    },
  };
});
vi.mock('../../src/core/json/json.ts', async (original) => {
  const real = await original<typeof import('../../src/core/json/json.ts')>();
  return {
    ...real,
    canonicalJson: (value: Parameters<typeof real.canonicalJson>[0]) => {
      work.add('canonical forms');
      return real.canonicalJson(value);
    },
    toJson: (...args: Parameters<typeof real.toJson>) => {
      work.add('checked values');
      return real.toJson(...args);
    },
  };
});

const { parse, stringify } = JSON;
const { structuredClone: clone } = globalThis;
const { freeze } = Object;

beforeAll(() => {
  JSON.stringify = (value: unknown, ...rest: never[]) => {
    const text = stringify(value, ...rest);
    work.add('serialised bytes', text?.length ?? 0);
    return text;
  };
  JSON.parse = (text, ...rest) => {
    work.add('parsed bytes', text.length);
    return parse(text, ...rest);
  };
  globalThis.structuredClone = (value, options) => {
    work.add('clones');
    return clone(value, options);
  };
  Object.freeze = <T>(value: T) => {
    work.add('frozen');
    return freeze(value);
  };
});
afterAll(() => {
  JSON.stringify = stringify;
  JSON.parse = parse;
  globalThis.structuredClone = clone;
  Object.freeze = freeze;
});

const pieces = Array.from({ length: 20 }, (_, n) => `piece ${n % 10} `);

function define(app: TestApp): Agent {
  const model = app.defineModel({ name: 'instant' }, async ({ messages }, { stream }) => {
    const asked = messages.at(-1)?.role === 'user';
    if (asked) {
      return {
        message: {
          role: 'model',
          content: [{ toolRequest: { name: 'count', ref: 'r', input: {} } }],
        },
        finishReason: 'stop',
      };
    }
    for (const text of pieces) await stream({ content: [{ text }] });
    return {
      message: { role: 'model', content: [{ text: pieces.join('') }] },
      finishReason: 'stop',
    };
  });
  app.defineTool({ name: 'count', description: 'Counts.' }, (_, { session }) => {
    session?.setCustom({ turn: ((session.custom as { turn: number }).turn + 1) % 10 });
    return 'counted';
  });
  return app.defineAgent({
    name: 'chat',
    model,
    tools: ['count'],
    initialState: { turn: 0 },
  }) as unknown as Agent;
}

type Turns = (agent: Agent) => () => Promise<void>;

/** All on one connection. */
const connected: Turns = (agent) => {
  const connection: AgentConnection = agent.streamBidi();
  return async () => {
    await connection.sendText('the same question every time');
    for await (const chunk of connection.turn()) void chunk;
  };
};

/** Each by itself, on the same session. */
const oneShot: Turns = (agent) => async () => {
  const output = await agent.runText('the same question every time', { sessionId: 's' });
  expect(output.finishReason).toBe('stop');
};

/** What ten turns cost, the first one being this one. */
async function costOf(turn: () => Promise<void>): Promise<Record<string, number>> {
  work.counts.clear();
  for (let n = 0; n < 10; n++) await turn();
  return Object.fromEntries([...work.counts].toSorted());
}

async function expectFlat(app: TestApp, turns: Turns): Promise<void> {
  const turn = turns(define(app));
  for (let n = 0; n < 10; n++) await turn();
  const early = await costOf(turn);
  for (let n = 20; n < 990; n++) await turn();
  const late = await costOf(turn);
  expect(must(early['checked values'])).toBeGreaterThan(0);
  // Numbers that grow, such as indexes, take a few digits more; a single old message would be hundreds of bytes.
  const slack: Record<string, number> = {
    'hashed bytes': 10 * 4,
    'serialised bytes': 10 * 12,
    'parsed bytes': 10 * 12,
  };
  for (const name of new Set([...Object.keys(early), ...Object.keys(late)])) {
    const difference = (late[name] ?? 0) - (early[name] ?? 0);
    expect(difference, `${name}: ${early[name]} early, ${late[name]} late`).toBeLessThanOrEqual(
      slack[name] ?? 0,
    );
  }
}

describe('S128 the thousandth turn does the work of the tenth', () => {
  test('S128 without a store, on a connection', async () => {
    await using app = openApp({ storeless: true });
    await expectFlat(app, connected);
  });

  test('S128 with the memory store, on a connection', async () => {
    await using app = openApp({ store: memoryStore() });
    await expectFlat(app, connected);
  });

  test('S128 with the memory store, each turn by itself', async () => {
    await using app = openApp({ store: memoryStore() });
    await expectFlat(app, oneShot);
  });

  test('S128 with the SQLite store, each turn by itself', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-flat-'));
    try {
      const store: Store = sqliteStore(join(folder, 'flat.db'));
      await using app = openApp({ store });
      await expectFlat(app, oneShot);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
