import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WaymarkError } from '../../src/core/error.ts';
import type { SummaryRequest } from '../../src/generate/answer/history.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, type TestApp, told } from './support/kit.ts';

/** An agent that is compacted at 40 messages, and the number of summaries that were made for it. */
function define(app: TestApp) {
  const asked: SummaryRequest[] = [];
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const chat = app.defineAgent({
    name: 'chat',
    model,
    compact: {
      whenTokens: 40,
      keepTokens: 10,
      count: () => 1,
      summarize: async (request) => {
        asked.push(request);
        return `summary ${asked.length}`;
      },
    },
  });
  return { chat, model, asked };
}

test('S410 S411 after 200 turns and a restart, a turn, a fork and a restored branch make no summary again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-compaction-'));
  const path = join(folder, 'test.db');
  try {
    const store = sqliteStore(path);
    {
      await using app = openApp({ store });
      const { chat, asked, model } = define(app);
      for (let turn = 0; turn < 200; turn++) await chat.run(`turn ${turn}`, { sessionId: 's' });
      expect(asked.length).toBeGreaterThan(5);
      expect(asked.length).toBeLessThan(20);
      // Each summary is made of the one before and what is new.
      expect(asked[1]?.previous).toBe('summary 1');
      expect(must(model.requests.at(-1)).messages.length).toBeLessThanOrEqual(41);
    }
    await store.close?.();
    const again = sqliteStore(path);
    await using app = openApp({ store: again });
    const { chat, asked, model } = define(app);
    const session = must(await chat.getSession('s'));
    expect(session.state?.messages).toHaveLength(400);
    const summary = must(session.summary);
    expect(summary.messages).toBeGreaterThan(340);
    await chat.run('after the restart', { sessionId: 's' });
    expect(asked).toHaveLength(0);
    expect(told(model.requests[0]?.messages)[0]).toBe(
      `user: Summary of the conversation before this:\n${summary.text}`,
    );
    const fork = await chat.fork(must(session.headId));
    expect((await chat.getSession(fork.sessionId))?.summary).toEqual(summary);
    await chat.run('in the fork', { sessionId: fork.sessionId });
    await chat.restore(must(session.headId));
    await chat.run('in the restored branch', { sessionId: 's' });
    expect(asked).toHaveLength(0);
    expect((await again.maintenance?.verify())?.length).toBe(0);
    await again.close?.();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('S412 S413 a refused request is compacted once, and the tokens of the summary count', async () => {
  await using app = openApp();
  const refusal = new WaymarkError('INVALID_ARGUMENT', 'too long on purpose', {
    details: { contextOverflow: true },
  });
  const model = scriptedModel([
    'one',
    'two',
    { error: refusal },
    { text: 'brief', usage: { totalTokens: 100 } },
    { text: 'three', usage: { totalTokens: 10 } },
    { error: refusal },
    'brief again',
    { error: refusal },
  ]);
  const chat = app.defineAgent({ name: 'chat', model, compact: { whenTokens: 1_000_000 } });
  const sessionId = 's';
  await chat.run('a', { sessionId });
  await chat.run('b', { sessionId });
  const output = await chat.run('c', { sessionId });
  expect(output).toMatchObject({ text: 'three', usage: { totalTokens: 110 } });
  expect(app.errors).toEqual([]);
  const stored = must(await chat.getSession(sessionId));
  expect(told(stored.state?.messages)).toEqual([
    'user: a',
    'model: one',
    'user: b',
    'model: two',
    'user: c',
    'model: three',
  ]);
  expect(stored.summary).toMatchObject({ text: 'brief', messages: 4 });
  const failed = await chat.run('d', { sessionId, throwOnError: false });
  expect(failed.error).toMatchObject({ details: { contextOverflow: true } });
  expect(model.requests).toHaveLength(8);
});
