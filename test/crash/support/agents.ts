import { createRequire } from 'node:module';
import { type App, waymark } from '../../../src/app.ts';
import { toWaymarkError } from '../../../src/core/error.ts';
import { type Clock, systemClock } from '../../../src/core/time.ts';
import type { ModelRequest } from '../../../src/generate/model.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { type ScriptedReply, scriptedModel } from '../../../src/testing/scripted-model.ts';
import { sharedClock } from '../../support/shared-clock.ts';
import type { Journal } from './journal.ts';

/** Where a store is that several processes open. */
export interface Place {
  readonly kind: 'sqlite' | 'libsql' | 'postgres' | 'file';
  /** A path, or a connection string. */
  readonly at: string;
  /** A module whose packages a process of the place uses. */
  readonly from?: string;
  readonly schema?: string;
  /** The file of the clock that its processes share; see {@link sharedClock}. */
  readonly clockFile: string;
}

type Libsql = typeof import('@libsql/client');

/** Opens it. */
export async function openPlace(place: Place): Promise<Store> {
  const { kind, at, from, schema = 'waymark' } = place;
  if (kind === 'sqlite') {
    const { sqliteStore } = await import('../../../src/store/sqlite/index.ts');
    return sqliteStore(at, { clock: clockOf(place) });
  }
  if (kind === 'libsql') {
    const { createClient } = createRequire(from ?? import.meta.url)('@libsql/client') as Libsql;
    const { libsqlStore } = await import('../../../src/store/libsql/index.ts');
    const client = createClient({ url: `file:${at}`, concurrency: 1 });
    return libsqlStore({ client, clock: clockOf(place) });
  }
  if (kind === 'file') {
    const { fileStore } = await import('../../../src/store/file/index.ts');
    return fileStore(at, { clock: clockOf(place) });
  }
  const { postgresStore } = await import('../../../src/store/postgres/index.ts');
  return postgresStore({ connectionString: at, schema, max: 4 });
}

/** The clock that the processes of a place share. */
export function clockOf({ clockFile }: Place): Clock {
  return sharedClock(clockFile).clock;
}

export interface CrashAppOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly claimTtl: number;
  readonly work?: boolean;
}

/**
 * An app whose agents say in the journal what they do. The text of an input says what it takes: `use 2` calls the tool two
 * times, one after the other; `hold` makes the model hold its answer back until the journal has the signal `go`; `hang` never ends
 * by itself; `block` blocks the event loop of the process until the signal.
 */
export function createCrashApp(options: CrashAppOptions): App {
  const { store, clock, journal, claimTtl, work = true } = options;
  const scripted = scriptedModel({ patterns: [], afterTools: reply, otherwise: reply });
  const app = waymark({
    store,
    clock,
    claimTtl,
    work,
    model: {
      ...scripted,
      async run(request, call) {
        const stopped = (): void => journal.write({ kind: 'stopped' });
        call.signal.addEventListener('abort', stopped, { once: true });
        const { text, results } = understand(request);
        // The model is asked again after the results were kept.
        for (const key of results) journal.write({ kind: 'recorded', key });
        journal.write({ kind: 'asked', what: text });
        if (/\bblock\b/.test(text)) blockUntil(() => journal.hasSignal('go'));
        const holds = /\bhold\b/.test(text) && results.length >= numberIn(text, 'use');
        while (holds && !journal.hasSignal('go')) await systemClock.sleep(5, call.signal);
        return await scripted.run(request, call);
      },
    },
    onError(error) {
      const { status, message } = toWaymarkError(error);
      journal.write({ kind: 'error', status, message });
    },
  });
  const act = app.defineTool(
    {
      name: 'act',
      description: 'Does something outside',
      input: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
    },
    async (input, { idempotencyKey: key }) => {
      const { what } = input as { what: string };
      journal.write({ kind: 'effect', key, what });
      await systemClock.sleep(2);
      return { key };
    },
  );
  const tools = [act];
  app.defineAgent({ name: 'chat', tools, concurrency: 'wait' });
  app.defineAgent({ name: 'strict', tools, concurrency: 'reject' });
  app.defineCustomAgent({ name: 'steps', concurrency: 'wait' }, async (session) => {
    await session.run(async ({ message }, { snapshotId }) => {
      const text = message === undefined ? '' : textOf(message);
      const done: string[] = [];
      for (const name of ['one', 'two']) {
        const what = `${text} ${name}`;
        const key = `${snapshotId} ${what}`;
        const result = await session.step(name, async () => {
          journal.write({ kind: 'effect', key, what });
          await systemClock.sleep(2);
          return what;
        });
        journal.write({ kind: 'recorded', key });
        done.push(result);
      }
      session.addMessages({ role: 'model', content: [{ text: `did ${done.join(', ')}` }] });
    });
  });
  return app;
}

/** What a request asks for, and the keys of the tool results that it brings. */
function understand({ messages }: ModelRequest): { text: string; results: string[] } {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const asked = messages[at];
  return {
    text: asked === undefined ? '' : textOf(asked),
    results: messages.slice(at).flatMap(({ content }) => content.flatMap(keyOf)),
  };
}

function reply(request: ModelRequest): ScriptedReply {
  const { text, results } = understand(request);
  if (results.length < numberIn(text, 'use')) {
    const input = { what: `${text} ${results.length}` };
    return { toolCalls: [{ name: 'act', input }], delay: 1 };
  }
  if (/\bhang\b/.test(text)) return { hang: true, parts: [{ text: 'so far' }] };
  return { chunks: ['answer ', 'to ', text], delay: 1, chunkDelay: 1 };
}

function keyOf(part: object): string[] {
  if (!('toolResponse' in part)) return [];
  const { output } = part.toolResponse as { output?: { key?: string } };
  return output?.key === undefined ? [] : [output.key];
}

/** The number after a word of a text; 0 when there is none. */
function numberIn(text: string, word: string): number {
  return Number(new RegExp(`\\b${word} (\\d+)`).exec(text)?.[1] ?? 0);
}

/** Blocks this thread, for ten minutes at most. */
function blockUntil(isOver: () => boolean): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let left = 600_000; left > 0 && !isOver(); left -= 20) Atomics.wait(cell, 0, 0, 20);
}
