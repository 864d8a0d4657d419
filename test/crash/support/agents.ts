import { type App, waymark } from '../../../src/app.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { toWaymarkError } from '../../../src/core/error.ts';
import { textOf } from '../../../src/generate/message.ts';
import type { ModelRequest } from '../../../src/generate/model.ts';
import type { Store } from '../../../src/session/store.ts';
import { type ScriptedReply, scriptedModel } from '../../../src/testing/scripted-model.ts';
import type { Journal } from './journal.ts';

/** Where a store is that several processes open. */
export interface Place {
  readonly kind: 'sqlite' | 'postgres';
  /** A path, or a connection string. */
  readonly at: string;
  readonly schema?: string;
}

/** Opens it. */
export async function openPlace({ kind, at, schema = 'waymark' }: Place): Promise<Store> {
  if (kind === 'sqlite') {
    const { sqliteStore } = await import('../../../src/store/sqlite/index.ts');
    return sqliteStore(at);
  }
  const { postgresStore } = await import('../../../src/store/postgres/index.ts');
  return postgresStore({ connectionString: at, schema, max: 4 });
}

export interface CrashAppOptions {
  readonly store: Store;
  readonly journal: Journal;
  readonly claimTtl: number;
  readonly work?: boolean;
}

/**
 * An app whose agents say in the journal what they do. The text of an input says what it takes: `use 2` calls the tool two
 * times, one after the other; `take 500` makes the model think for so many milliseconds; `hang` never ends by itself.
 */
export function createCrashApp({ store, journal, claimTtl, work = true }: CrashAppOptions): App {
  const scripted = scriptedModel({
    patterns: [],
    afterTools: (request) => reply(request, journal),
    otherwise: (request) => reply(request, journal),
  });
  const app = waymark({
    store,
    claimTtl,
    work,
    model: {
      ...scripted,
      run(request, call) {
        const stopped = (): void => journal.write({ kind: 'stopped', at: Date.now() });
        call.signal.addEventListener('abort', stopped, { once: true });
        return scripted.run(request, call);
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

function reply({ messages }: ModelRequest, journal: Journal): ScriptedReply {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const asked = messages[at];
  const text = asked === undefined ? '' : textOf(asked);
  const results = messages.slice(at).flatMap(({ content }) => content.flatMap(keyOf));
  // The model is asked again after the results were kept.
  for (const key of results) journal.write({ kind: 'recorded', key });
  journal.write({ kind: 'asked', what: text });
  const uses = numberIn(text, 'use');
  if (results.length < uses) {
    const input = { what: `${text} ${results.length}` };
    return { toolCalls: [{ name: 'act', input }], delayMs: 1 };
  }
  if (/\bhang\b/.test(text)) return { hang: true, parts: [{ text: 'so far' }] };
  const chunks = ['answer ', 'to ', text];
  return { chunks, delayMs: Math.max(1, numberIn(text, 'take')), chunkDelayMs: 1 };
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
