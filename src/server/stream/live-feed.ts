import { eventOf, toEventId } from '../../agent/persistence/event-id.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { waitingIn } from '../../core/async/channel.ts';
import { jsonLength } from '../../core/json/length.ts';
import { letOthersRun } from '../../core/platform.ts';
import type { Chunk, Output } from '../../protocol/turn.ts';
import { type FeedBatch, type FeedEvent, type FollowOptions, watchRun } from './feed.ts';

/** How many chunks a reader may be behind the turn; one that is further behind reads on from the store. */
const maxWaiting = 1024;

/** How many characters of JSON those chunks may have together, and one chunk. */
const maxWaitingLength = 256 * 1024;

/** What a reader that fell behind has yet to see: the rest of a run, or a chunk that is in no run. */
type Missed =
  | { readonly runId: string; readonly after?: string | undefined; readonly lost?: boolean }
  | { readonly chunk: Chunk };

export interface LiveFeedOptions extends FollowOptions {
  /** Whether the store has the chunks as well. If not, the turn waits for a slow reader. */
  readonly watched: boolean;
}

/**
 * The chunks of turns that run in this process, as they come, with the ids under which the store keeps them. A slow
 * reader does not hold up the turn, nor does what it has not read pile up: it goes on from the store where it is.
 */
export class LiveFeed {
  readonly #agent: Agent;
  readonly #source: AsyncIterable<Chunk>;
  readonly #options: LiveFeedOptions;
  #waiting: FeedEvent[] = [];
  #waitingLength = 0;
  #missed: Missed[] | undefined;
  #runId: string | undefined;
  // The last event of the current run that was put in line, or seen in the store.
  #lastId: string | undefined;
  #lastAttempt = 0;
  #seenInStore = false;
  #ended: { readonly error?: unknown } | undefined;
  #changed = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();
  readonly #accepted = Promise.withResolvers<void>();
  /** Resolves with the first chunk; rejects when the turn was refused before. */
  readonly accepted: Promise<void> = this.#accepted.promise;
  /** Resolves when the last chunk has come, whether anybody reads or not. */
  readonly ended: Promise<void>;

  constructor(agent: Agent, source: AsyncIterable<Chunk>, options: LiveFeedOptions) {
    this.#agent = agent;
    this.#source = source;
    this.#options = options;
    options.reader.addEventListener('abort', () => this.#wake(), { once: true });
    // Whoever reads the events learns of it there.
    this.accepted.catch(() => {});
    this.ended = this.#read();
  }

  /**
   * The events up to the end of the turns, without their output; gives an output only when another process took a run
   * over, and this one's is not the one that counts. Ends early when the reader has left.
   */
  async *batches(): AsyncGenerator<FeedBatch, Output | undefined> {
    const { reader } = this.#options;
    while (!reader.aborted) {
      const batch = this.#waiting;
      if (batch.length > 0) {
        this.#waiting = [];
        this.#waitingLength = 0;
        this.#room.resolve();
        yield batch;
      } else if (this.#missed) {
        const output = yield* this.#catchUp(this.#missed);
        if (output) return output;
      } else if (this.#ended) {
        if ('error' in this.#ended) throw this.#ended.error;
        return undefined;
      } else {
        this.#changed = Promise.withResolvers();
        await this.#changed.promise;
      }
    }
    return undefined;
  }

  // Goes on whether anybody reads or not, so that the turn does.
  async #read(): Promise<void> {
    const source = this.#source[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { value, done } = await source.next();
        this.#accepted.resolve();
        if (done) break;
        // What comes in the same moment goes out together, and a model that never waits does not keep the event loop.
        await letOthersRun();
        this.#take(value);
        for (const chunk of waitingIn(this.#source)) this.#take(chunk);
        this.#wake();
        if (!this.#options.watched) await this.#waitForReader();
      }
      this.#ended = {};
    } catch (error) {
      this.#ended = { error };
      this.#accepted.reject(error);
    }
    this.#wake();
  }

  #take(chunk: Chunk): void {
    if (this.#options.reader.aborted) return;
    const { watched } = this.#options;
    // What nobody keeps cannot be come back to.
    const event = watched ? eventOf(chunk) : undefined;
    const id = event && toEventId(event);
    const started = startedRun(chunk);
    // A run that another process has taken over starts once more.
    const runId = started === this.#runId ? undefined : started;
    if (runId !== undefined) {
      this.#runId = runId;
      this.#lastId = undefined;
      this.#seenInStore = false;
    }
    const current = this.#runId;
    if (watched && current !== undefined && id === undefined && isTurnEnd(chunk)) {
      // An end that is no event: the run goes on elsewhere.
      this.#miss({ runId: current, after: this.#lastId, lost: true });
    } else if (this.#missed) {
      if (runId !== undefined) this.#miss({ runId });
      else if (id === undefined) this.#miss({ chunk });
    } else if (this.#seenInStore && id !== undefined && isAtOrBefore(id, this.#lastId)) {
      // It came from there already.
    } else if (watched && current !== undefined && id && this.#isFull()) {
      this.#miss({ runId: current, after: this.#lastId });
    } else {
      if (event !== undefined) {
        const { attempt } = event;
        if (this.#lastId !== undefined && attempt > this.#lastAttempt) {
          // Another process took the run over, and the turn here follows it.
          this.#waiting.push({ type: 'reset', id: this.#lastId, attempt });
        }
        this.#lastId = id;
        this.#lastAttempt = attempt;
      }
      this.#waitingLength += lengthOf(chunk);
      this.#waiting.push(
        id === undefined ? { type: 'chunk', chunk } : { type: 'chunk', id, chunk },
      );
    }
  }

  #miss(missed: Missed): void {
    this.#missed ??= [];
    this.#missed.push(missed);
  }

  async *#catchUp(missed: Missed[]): AsyncGenerator<FeedBatch, Output | undefined> {
    for (let next = missed.shift(); next; next = missed.shift()) {
      if ('chunk' in next) {
        yield [{ type: 'chunk', chunk: next.chunk }];
        continue;
      }
      const output = yield* this.#fromStore(next);
      if (output || this.#options.reader.aborted) return output;
    }
    this.#missed = undefined;
    return undefined;
  }

  async *#fromStore({
    runId,
    after,
    lost = false,
  }: Extract<Missed, { runId: string }>): AsyncGenerator<FeedBatch, Output | undefined> {
    const { watched: _, ...follow } = this.#options;
    let elsewhere = lost;
    const events = watchRun(this.#agent, runId, {
      ...follow,
      ...(after !== undefined && { after }),
    });
    for await (const event of events) {
      if (event.type === 'output') return elsewhere ? event.output : undefined;
      if (event.type === 'reset') elsewhere = true;
      if (event.type === 'chunk' && runId === this.#runId) {
        this.#lastId = event.id;
        if (event.id !== undefined) this.#lastAttempt = attemptOf(event.id);
        this.#seenInStore = true;
      }
      yield [event];
      if (!elsewhere && event.type === 'chunk' && isTurnEnd(event.chunk)) return undefined;
    }
    return undefined;
  }

  async #waitForReader(): Promise<void> {
    while (this.#isFull() && !this.#options.reader.aborted) {
      this.#room = Promise.withResolvers();
      await this.#room.promise;
    }
  }

  #isFull(): boolean {
    return this.#waiting.length >= maxWaiting || this.#waitingLength >= maxWaitingLength;
  }

  #wake(): void {
    this.#changed.resolve();
    if (this.#options.reader.aborted) this.#room.resolve();
  }
}

// A sub-agent's turn starts and ends within that of its caller.
function startedRun({ agent, turnStart }: Chunk): string | undefined {
  return agent === undefined ? turnStart?.snapshotId : undefined;
}

/** Whether a chunk ends a turn of the agent itself. */
export function isTurnEnd({ agent, turnEnd }: Chunk): boolean {
  return agent === undefined && turnEnd !== undefined;
}

/** About how many characters a chunk has as JSON. Nearly all are one piece of text, which is told in a tenth of the time. */
function lengthOf(chunk: Chunk): number {
  return lengthOfText(chunk) ?? jsonLength(chunk, maxWaitingLength);
}

function lengthOfText(chunk: Chunk): number | undefined {
  for (const key in chunk) if (key !== 'modelChunk') return undefined;
  const { modelChunk } = chunk;
  for (const key in modelChunk) if (!textKeys.has(key)) return undefined;
  const part = modelChunk?.content.length === 1 ? modelChunk.content[0] : undefined;
  if (part === undefined || !('text' in part)) return undefined;
  for (const key in part) if (key !== 'text') return undefined;
  return part.text.length + aroundText;
}

/** What a piece of text has besides its content. */
const textKeys: ReadonlySet<string> = new Set(['role', 'index', 'content']);

/** The characters of JSON around it. */
const aroundText = 60;

function isAtOrBefore(id: string, last: string | undefined): boolean {
  if (last === undefined) return false;
  const [attempt, lastAttempt] = [attemptOf(id), attemptOf(last)];
  return attempt === lastAttempt ? sequenceOf(id) <= sequenceOf(last) : attempt < lastAttempt;
}

function attemptOf(id: string): number {
  return Number(id.slice(0, id.indexOf('.')));
}

function sequenceOf(id: string): number {
  return Number(id.slice(id.indexOf('.') + 1));
}
