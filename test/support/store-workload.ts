import { createIds } from '../../src/core/id.ts';
import { toJson } from '../../src/core/json/json.ts';
import { produce } from '../../src/core/json/produce.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Message } from '../../src/protocol/message.ts';
import { historyDelta } from '../../src/session/history.ts';
import { emptyState, hashState, type SessionState } from '../../src/session/session-state.ts';
import type { Claim, Scope, StateBase, StateWrite, Store } from '../../src/store/contract/store.ts';

const newId = createIds(systemClock);

/** What a turn makes of the state before it. */
export type Change = (state: SessionState, turn: number) => Omit<StateWrite, 'base'>;

export interface Turns {
  readonly scope: Scope;
  readonly sessionId: string;
  /** Takes turns, keeping what each commit gives for the next, as an open connection does. */
  take(count: number, change: Change): Promise<void>;
  /** Runs a turn like a separate call: the state is loaded. */
  takeAlone(change: Change): Promise<void>;
  /** Takes a turn that fails; the session stays where it was. */
  fail(change: Change): Promise<void>;
  /** Milliseconds of each turn so far. */
  readonly times: readonly number[];
  /** JSON of the messages written so far. */
  readonly written: () => number;
  readonly base: () => StateBase | undefined;
}

/** Turns on one session of a store, without models or agents. */
export function createTurns(store: Store, scope: Scope = { agent: 'bench' }): Turns {
  const { runs } = store;
  if (runs === undefined) throw new TypeError('The store has no runs.');
  const sessionId = newId();
  const times: number[] = [];
  let base: StateBase | undefined;
  let written = 0;

  const claim = (): Promise<Claim> =>
    runs.claim(scope, {
      runId: newId(),
      sessionId,
      from: 'head',
      mode: 'attached',
      inputs: [{ message: text('user', 'u'.repeat(200)) }],
      ttl: 5000,
      worker: 'bench',
    });
  const commit = async (
    held: Claim,
    from: StateBase | undefined,
    change: Change,
    status: 'succeeded' | 'failed' = 'succeeded',
  ) => {
    const turnIndex = held.parent === undefined ? 0 : held.parent.turnIndex + 1;
    const write = change(from?.state ?? emptyState, turnIndex);
    written += freshBytes(from?.state ?? emptyState, write.state);
    const committed = await runs.commit(held, {
      ...write,
      ...(from && { base: from, parentId: from.snapshotId }),
      snapshotId: held.runId,
      turnIndex,
      event: 'turnEnd',
      status,
      finishReason: status === 'failed' ? 'failed' : 'stop',
      usage: { inputTokens: 1000 + turnIndex, outputTokens: 300, totalTokens: 1300 + turnIndex },
      stateHash: hashState(write.state),
      end: true,
    });
    if (status === 'succeeded') base = committed.base;
  };
  return {
    scope,
    sessionId,
    times,
    written: () => written,
    base: () => base,
    async take(count, change) {
      for (let n = 0; n < count; n++) {
        const begin = performance.now();
        await commit(await claim(), base, change);
        times.push(performance.now() - begin);
      }
    },
    async fail(change) {
      await commit(await claim(), base, change, 'failed');
    },
    async takeAlone(change) {
      const begin = performance.now();
      const held = await claim();
      const { parent } = held;
      const from = parent && (await runs.load(scope, { snapshotId: parent.snapshotId }));
      await commit(held, from, change);
      times.push(performance.now() - begin);
    },
  };
}

// Costs what is new, as it must not show in the times.
function freshBytes(before: SessionState, after: SessionState): number {
  const delta = historyDelta(before.history, after.history);
  const fresh =
    delta.kind === 'append'
      ? delta.messages
      : delta.pieces.flatMap((piece) => (piece.kind === 'new' ? piece.messages : []));
  return fresh.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
}

/** A message of one text. */
export function text(role: 'user' | 'model', words: string): Message {
  return frozen({ role, content: [{ text: words }] });
}

function frozen(message: Message): Message {
  return toJson(message, 'message') as unknown as Message;
}

const vocabulary =
  'the of and a to in is you that it he was for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part'.split(
    ' ',
  );

// Words that differ from turn to turn and repeat no more than those of a language do.
function words(turn: number, length: number): string {
  let seed = turn * 7919 + length;
  let text = `${turn}`;
  while (text.length < length) {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    text += ` ${vocabulary[seed % vocabulary.length]}`;
  }
  return text.slice(0, length);
}

/** A turn with one tool call: 200 B from the user, 1 KB from the tool, 1 KB of answer. */
export const toolTurn: Change = (state, turn) => {
  const ref = `call-${turn}`;
  const messages = [
    text('user', words(turn, 200)),
    frozen({
      role: 'model',
      content: [{ toolRequest: { name: 'lookup', ref, input: { query: `turn ${turn}` } } }],
    }),
    frozen({
      role: 'tool',
      content: [{ toolResponse: { name: 'lookup', ref, output: words(turn, 1000) } }],
    }),
    text('model', words(turn, 1000)),
  ];
  return { state: { ...state, history: state.history.append(messages) } };
};

/** A turn without tools: 200 B from the user, 400 B of answer. */
export const plainTurn: Change = (state, turn) => {
  const messages = [text('user', words(turn, 200)), text('model', words(turn, 400))];
  return { state: { ...state, history: state.history.append(messages) } };
};

/** A plain turn in a session that keeps only its last messages. */
export function windowTurn(size: number): Change {
  return (state, turn) => {
    const last = state.history.toArray().slice(-size);
    const trimmed = { ...state, history: state.history.replace(last) };
    return plainTurn(trimmed, turn);
  };
}

/** A plain turn that changes about a hundred bytes of a custom document of this many. */
export function customTurn(bytes: number): Change {
  const items = Math.ceil(bytes / 100);
  return (state, turn) => {
    const before =
      state.custom ??
      toJson({ items: Array.from({ length: items }, (_, n) => item(n, 0)) }, 'custom');
    const { value, patch } = produce(before as { items: Item[] }, (draft) => {
      draft.items[turn % items] = item(turn % items, turn);
    });
    const next = plainTurn(state, turn);
    if (state.custom === undefined) return { state: { ...next.state, custom: before } };
    return { state: { ...next.state, custom: value }, customPatch: patch };
  };
}

type Item = { id: number; version: number; note: string };

function item(n: number, version: number): Item {
  return { id: n, version, note: words(version, 60) };
}
