import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { CallerCursor, LogEvent } from '../../agent/persistence/caller-cursor.ts';
import { outputOfRun } from '../../agent/turn/join.ts';
import { type ErrorBody, isWaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { scopeOf, toEventId } from '../../protocol/ids.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Chunk, Output, Reset } from '../../protocol/turn.ts';
import { notFound, toWireError } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { fromAnswer } from '../http/log.ts';
import { logRequestFault, type OpenCall, type RequestContext } from '../http/server-context.ts';

/** An event of a turn for clients. `output` and `error` are final. */
export type FeedEvent =
  | { readonly type: 'chunk'; readonly id?: string; readonly chunk: Chunk }
  | ({ readonly type: 'reset'; readonly id: string } & Readonly<Reset>)
  | { readonly type: 'output'; readonly output: Output }
  | { readonly type: 'error'; readonly error: ErrorBody };

/** Events that came together; passing them on one by one would cost more than what they say. */
export type FeedBatch = readonly FeedEvent[];

interface FollowOptions {
  readonly owner?: string | undefined;
  /** Aborts when the reader has left, or the server ends; the feed then ends without a final event. */
  readonly reader: AbortSignal;
  /** The request id of the turn: its output is then what the turn gave, which may be more than its snapshot tells. */
  readonly requestId?: string | undefined;
  /** The last event that the reader has. */
  readonly after?: string | undefined;
}

/** The events of a run for a client, and its output. Ends without a final event only when the reader has left. */
export async function* runFeed(
  c: RequestContext,
  { agent, caller }: Pick<OpenCall, 'agent' | 'caller'>,
  { runId, ...follow }: Omit<FollowOptions, 'owner'> & { readonly runId: string },
): AsyncGenerator<FeedBatch> {
  try {
    const events = watchRun(agent, runId, { ...follow, ...ownerOf(caller) });
    for await (const event of events) yield [event];
  } catch (error) {
    if (follow.reader.aborted) return;
    logRequestFault(c, error);
    yield [{ type: 'error', error: toWireError(error) }];
  }
}

/** As {@link runFeed}, one by one, and failures are thrown. */
export async function* watchRun(
  agent: Agent,
  runId: string,
  { after, reader, requestId, owner }: FollowOptions,
): AsyncGenerator<FeedEvent> {
  for await (const event of agent.watch(runId, defined({ owner, signal: reader, after }))) {
    if (reader.aborted) return;
    switch (event.type) {
      case 'chunk':
        yield { type: 'chunk', id: event.id, chunk: event.chunk as Chunk };
        break;
      case 'reset':
        yield event;
        break;
      case 'end': {
        const { spec } = internalsOf(agent);
        const run = { spec, scope: scopeOf(spec, owner) };
        const given = requestId && (await outputOfRun(run, runId, requestId));
        yield { type: 'output', output: given || outputOfSnapshot(event.snapshot) };
        return;
      }
    }
  }
  // Unknown, or deleted meanwhile.
  if (!reader.aborted) throw notFound('snapshot', runId);
}

/** Throws the error that a feed begins with, so that it can still be answered with its status. */
export function throwFirstError({ value }: IteratorResult<FeedBatch>): void {
  const [first] = value ?? [];
  if (first?.type === 'error') throw fromAnswer(first.error);
}

/** A feed whose first batch has been asked for already. No generator: a step through one costs as much as writing a chunk. */
export function startingWith<T>(
  first: Promise<IteratorResult<T>>,
  rest: AsyncIterator<T>,
): AsyncIterableIterator<T> {
  let asked: Promise<IteratorResult<T>> | undefined = first;
  return {
    next() {
      const next = asked ?? rest.next();
      asked = undefined;
      return next;
    },
    return: async (value) => (await rest.return?.(value)) ?? { done: true, value },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

interface CursorFeedOptions extends FollowOptions {
  readonly agent: Agent;
  /** Whether the store has the events as well. If not, the turn waits for a slow client. */
  readonly watched: boolean;
}

/**
 * The events of turns that run in this process, without their output. A slow client of a watched run does not hold up the
 * turn: events that memory no longer has are read from the store. Ends early when the client has left; returns an output
 * only when another process took over a run, so that the output of this process does not count.
 */
export function cursorFeed(
  cursor: CallerCursor,
  options: CursorFeedOptions,
): AsyncGenerator<FeedBatch, Output | undefined> {
  if (options.watched) cursor.readFromStore();
  options.reader.addEventListener('abort', () => cursor.leave(), { once: true });
  return new CursorFeed(cursor, options).batches();
}

class CursorFeed {
  readonly #cursor: CallerCursor;
  readonly #options: CursorFeedOptions;
  #runId: string | undefined;
  /** The last event of the current run that the client got. */
  #lastId: string | undefined;
  #attempt = 0;

  constructor(cursor: CallerCursor, options: CursorFeedOptions) {
    this.#cursor = cursor;
    this.#options = options;
  }

  async *batches(): AsyncGenerator<FeedBatch, Output | undefined> {
    const { reader } = this.#options;
    const cursor = this.#cursor;
    try {
      while (!reader.aborted) {
        if (cursor.ended === undefined) await cursor.gathered();
        const events = cursor.take();
        const { missedRun } = cursor;
        for (let at = 0; at < events.length; ) {
          const batch: FeedEvent[] = [];
          at = this.#addTo(batch, events, at);
          if (batch.length > 0) yield batch;
          if (at === events.length || this.#runId === undefined) continue;
          at++;
          const output = yield* this.#readStored(this.#runId, { isElsewhere: true });
          if (output || reader.aborted) return output;
        }
        if (events.length > 0) continue;
        if (missedRun !== undefined) {
          const output = yield* this.#readMissed(missedRun);
          if (output) return output;
        } else if (cursor.ended !== undefined) {
          if ('error' in cursor.ended) throw cursor.ended.error;
          return undefined;
        }
      }
      return undefined;
    } finally {
      cursor.leave();
    }
  }

  /** Adds events to a batch, up to an end that is not the run's own: the run continues in another process. Gives its index. */
  #addTo(batch: FeedEvent[], events: readonly LogEvent[], from: number): number {
    const { watched } = this.#options;
    for (let at = from; at < events.length; at++) {
      const { attempt = 0, seq = 0, kept = false, shown } = events[at] ?? {};
      if (shown === undefined) continue;
      this.#seeStart(shown);
      if (!watched || !kept) {
        if (watched && this.#runId !== undefined && isTurnEnd(shown)) return at;
        batch.push({ type: 'chunk', chunk: shown });
        continue;
      }
      const { reset } = shown;
      const id = toEventId({ attempt, seq });
      if (this.#lastId !== undefined && attempt > this.#attempt) {
        // Another process took over the run, and the turn here follows it.
        batch.push({ attempt, ...reset, type: 'reset', id: reset ? id : this.#lastId });
      }
      this.#attempt = attempt;
      this.#lastId = id;
      if (reset === undefined) batch.push({ type: 'chunk', id, chunk: shown });
    }
    return events.length;
  }

  async *#readMissed(runId: string): AsyncGenerator<FeedBatch, Output | undefined> {
    this.#startRun(runId);
    const output = yield* this.#readStored(runId, { isElsewhere: false });
    this.#cursor.skipMissed();
    return output;
  }

  /** Sends the rest of a run from the store; gives its output when another process has worked on it. */
  async *#readStored(
    runId: string,
    { isElsewhere }: { readonly isElsewhere: boolean },
  ): AsyncGenerator<FeedBatch, Output | undefined> {
    const { agent, watched: _, ...follow } = this.#options;
    const after = this.#lastId;
    let elsewhere = isElsewhere;
    const events = watchRun(agent, runId, { ...follow, after });
    for await (const event of events) {
      if (event.type === 'output') return elsewhere ? event.output : undefined;
      if (event.type === 'reset') elsewhere = true;
      if (event.type !== 'error' && event.id !== undefined) {
        this.#lastId = event.id;
        this.#attempt = Number.parseInt(event.id, 10);
      }
      yield [event];
      if (!elsewhere && event.type === 'chunk' && isTurnEnd(event.chunk)) return undefined;
    }
    return undefined;
  }

  #seeStart({ agent, turnStart }: Chunk): void {
    // A sub-agent's turn starts within that of its caller.
    if (agent === undefined && turnStart?.snapshotId !== undefined) {
      this.#startRun(turnStart.snapshotId);
    }
  }

  /** A run that another process has taken over starts once more, with the same id. */
  #startRun(runId: string): void {
    if (runId === this.#runId) return;
    this.#runId = runId;
    this.#lastId = undefined;
    this.#attempt = 0;
  }
}

/** Whether a chunk ends a turn of the agent itself. */
export function isTurnEnd({ agent, turnEnd }: Chunk): boolean {
  return agent === undefined && turnEnd !== undefined;
}

/** An output as remote clients get it. */
export function toPublicOutput(output: Output): Output {
  const { error } = output;
  return error && isWaymarkError(error) ? { ...output, error: toWireError(error) } : output;
}
