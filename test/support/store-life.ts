import { z } from 'zod';
import type { Agent } from '../../src/agent/contract/agent.ts';
import { requestKey } from '../../src/agent/turn/inputs.ts';
import { waymark } from '../../src/app.ts';
import { createIds } from '../../src/core/id.ts';
import { sha256 } from '../../src/core/json/hash.ts';
import { systemClock } from '../../src/core/time.ts';
import type { App } from '../../src/index.ts';
import { currentSession } from '../../src/index.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import type { Scope, Store } from '../../src/store/contract/store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { text } from './store-workload.ts';

/** The scopes that {@link liveIn} leaves something in. */
export const lifeScopes: readonly Scope[] = [{ agent: 'chat' }, { agent: 'chat', owner: 'ada' }];

/** The request ids under which {@link liveIn} leaves something. */
export const lifeRequests: readonly string[] = ['answered', 'open'];

const trip = z.object({ likes: z.array(z.string()), note: z.string() });

// Long enough that every store keeps it in chunks.
const book = Array.from({ length: 9_000 }, (_, at) => (at * 7919) % 10_007).join(' ');
const photo = `data:image/png;base64,${btoa(book)}`;

/** The agent that every stored life belongs to, over a store. Its app is closed by the caller. */
export function lifeApp(store: Store): { readonly app: App; readonly chat: Agent } {
  const model = scriptedModel({
    patterns: [
      [/like (\w+)/, ([, what = '']) => ({ toolCalls: [{ name: 'like', input: { what } }] })],
      [/trim/, { toolCalls: [{ name: 'trim' }] }],
      [/ask/, { toolCalls: [{ name: 'ask', ref: 'q', input: { question: 'Really?' } }] }],
      [/break/, { text: 'half', error: new Error('The model broke.') }],
      [/stream/, { chunks: ['one ', 'two ', 'three'] }],
    ],
    afterTools: (_, results) => `Done: ${JSON.stringify(results)}`,
    otherwise: (_, call) => `Answer ${call}, with some more words and a “quote”.`,
  });
  const app = waymark({ model, store, onError: () => {} });
  const like = app.defineTool(
    { name: 'like', description: 'Notes what is liked', input: z.object({ what: z.string() }) },
    ({ what }) => {
      const session = currentSession<z.infer<typeof trip>>();
      session.updateCustom((draft) => {
        draft.likes.push(what);
      });
      session.addArtifacts(
        { name: 'likes.txt', parts: [{ text: session.custom.likes.join('\n') }] },
        { name: 'long.txt', parts: [{ text: `All about ${what}. `.repeat(40) }] },
        { name: 'book.txt', parts: [{ text: `${book} About ${what}.` }] },
        { name: 'photo.png', parts: [{ media: { url: photo } }] },
      );
      return session.custom.likes.length;
    },
  );
  const trim = app.defineTool({ name: 'trim', description: 'Forgets the beginning' }, () => {
    const session = currentSession();
    session.setMessages(session.messages.slice(-3));
    return 'trimmed';
  });
  const ask = app.defineInterrupt({
    name: 'ask',
    description: 'Asks a person',
    input: z.object({ question: z.string() }),
    output: z.object({ answer: z.string() }),
  });
  const chat = app.defineAgent({
    name: 'chat',
    tools: [like, trim, ask],
    state: trip,
    initialState: { likes: [], note: 'n'.repeat(700) },
  });
  return { app, chat: chat as unknown as Agent };
}

/**
 * Fills a store with some of everything: sessions, branches, a restore, a fork, labels, metadata, artifacts, custom state, a
 * trimmed history, an interrupted turn, a failed turn, a detached run with events, an owner, a request id, a run that was given
 * up, and one whose worker died.
 */
export async function liveIn(open: () => Store): Promise<void> {
  const { app, chat } = lifeApp(open());
  const main = { sessionId: 'main' };
  await chat.runText('hello', main);
  const second = await chat.runText('I like tea', main);
  await chat.runText('I like coffee', main);
  await chat.runText('break, please', { ...main, throwOnError: false });
  await chat.restore(must(second.snapshotId));
  await chat.runText('I like mate', main);
  await chat.label(must(second.snapshotId), 'before coffee');
  await chat.updateSession('main', { title: 'Drinks', metadata: { topic: 'drinks', n: 7 } });
  await chat.fork(must(second.snapshotId), { sessionId: 'fork' });
  await chat.runText('and in the fork?', { sessionId: 'fork' });
  await chat.runText('trim it', { sessionId: 'fork' });
  await chat.runText('after the trim', { sessionId: 'fork' });
  await chat.runText('ask me', { sessionId: 'asked' });
  const away = await chat.run(
    { message: text('user', 'stream in the background'), detach: true },
    { sessionId: 'away' },
  );
  await chat.wait(must(away.snapshotId));
  await chat.runText('once', { sessionId: 'once', requestId: 'answered' });
  await chat.runText('of Ada’s own', { sessionId: 'main', owner: 'ada' });
  await chat.updateSession('main', { title: 'Ada’s' }, { owner: 'ada' });
  // Closes its store, too. A run that is left while the app is open would be taken over by it.
  await app.close();
  const store = open();
  await leaveRun(store);
  await giveUpRun(store);
  await store.close?.();
}

/** A run whose worker died: accepted, with a context, an event and a recorded step. */
async function leaveRun(store: Store): Promise<void> {
  const { runs, events } = store;
  if (runs === undefined || events === undefined) throw new TypeError('The store has no runs.');
  const run = await runs.claim(
    { agent: 'chat' },
    {
      runId: createIds(systemClock)(),
      sessionId: 'left',
      from: 'head',
      mode: 'accepted',
      inputs: [{ message: text('user', 'left behind') }],
      context: { who: 'ada' },
      ttl: 1,
      worker: 'gone',
      requests: [{ key: requestKey({ agent: 'chat' }, 'open'), digest: sha256('left behind') }],
    },
  );
  await events.append(run, [
    { attempt: 1, seq: 0, chunk: { modelChunk: { role: 'model', content: [{ text: 'first' }] } } },
    { attempt: 1, seq: 1, chunk: { status: 'working' } },
  ]);
  await runs.saveStep(run, 'fetch', { rows: [1, 2, 3] });
}

/** A run that was given up. */
async function giveUpRun({ runs }: Store): Promise<void> {
  const runId = createIds(systemClock)();
  const run = await must(runs).claim(
    { agent: 'chat' },
    {
      runId,
      sessionId: 'poison',
      from: 'head',
      mode: 'accepted',
      inputs: [{ message: text('user', 'poison') }],
      ttl: 60_000,
      worker: 'last',
    },
  );
  await must(runs).commit(run, {
    snapshotId: runId,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'failed',
    error: { status: 'INTERNAL', message: 'The run was given up.' },
    state: emptyState,
    stateHash: hashState(emptyState),
    end: true,
    deadLetter: true,
  });
}

export function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError('Expected a value.');
  return value;
}
