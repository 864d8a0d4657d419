import type { Agent } from '../agent/agent.ts';
import type { ErrorBody } from '../core/error.ts';
import type { Chunk, Output } from '../protocol/turn.ts';
import { toWireError } from './error-response.ts';
import { afterThisTurn } from './event-loop.ts';
import { notFound } from './not-found.ts';
import { outputOf } from './output-of.ts';

/** What a dialect puts on the wire for a turn. `output` and `error` are final. */
export type FeedEvent =
  | { readonly type: 'chunk'; readonly id?: string; readonly chunk: Chunk }
  | { readonly type: 'reset'; readonly id: string; readonly attempt: number }
  | { readonly type: 'output'; readonly output: Output }
  | { readonly type: 'error'; readonly error: ErrorBody };

/** Who follows, and for how long. */
export interface FollowOptions {
  readonly owner?: string;
  /** Aborts when the reader has left, or the server ends; the feed then ends without a final event. */
  readonly reader: AbortSignal;
}

/** The events of a run from `after` on, and its output. Ends without a final event only when the reader has left. */
export async function* runFeed(
  agent: Agent,
  runId: string,
  options: FollowOptions & { readonly after?: string },
): AsyncGenerator<FeedEvent> {
  try {
    yield* watchRun(agent, runId, options);
  } catch (error) {
    if (!options.reader.aborted) yield { type: 'error', error: toWireError(error) };
  }
}

async function* watchRun(
  agent: Agent,
  runId: string,
  { after, reader, ...owner }: FollowOptions & { readonly after?: string },
): AsyncGenerator<FeedEvent> {
  const options = { ...owner, signal: reader, ...(after !== undefined && { after }) };
  let last = after;
  for await (const event of agent.watch(runId, options)) {
    if (reader.aborted) return;
    switch (event.type) {
      case 'chunk':
        last = event.id;
        yield { type: 'chunk', id: event.id, chunk: event.chunk as Chunk };
        break;
      case 'reset':
        // A reader that comes back before the next chunk is told again.
        yield { type: 'reset', id: last ?? event.id, attempt: event.attempt };
        break;
      case 'end':
        yield { type: 'output', output: outputOf(event.snapshot) };
        return;
    }
  }
  // Never known, or erased meanwhile.
  if (!reader.aborted) throw notFound('snapshot', runId);
}

/**
 * The chunks of turns that run in this process, with the ids under which the store keeps them: a turn that can be
 * watched is followed through its store, so that a reader who comes back elsewhere finds the same events. Gives the
 * final output when the runs were taken over by another process, and this one's never comes.
 */
export async function* turnChunks(
  agent: Agent,
  source: AsyncIterator<Chunk>,
  options: FollowOptions & { readonly watched: boolean },
): AsyncGenerator<FeedEvent, Output | undefined> {
  const { watched, ...follow } = options;
  for (;;) {
    const next = await source.next();
    if (next.done || follow.reader.aborted) return undefined;
    const runId = watched ? startedRun(next.value) : undefined;
    if (runId === undefined) {
      yield { type: 'chunk', chunk: next.value };
      continue;
    }
    // A slow reader must not hold up the turn.
    const rest = drainTurn(source);
    rest.catch(() => {});
    const output = yield* watchTurn(agent, runId, follow);
    if (follow.reader.aborted || output) return output;
    await rest;
  }
}

// Up to the end of the turn; gives an output only when the run ended without one.
async function* watchTurn(
  agent: Agent,
  runId: string,
  options: FollowOptions,
): AsyncGenerator<FeedEvent, Output | undefined> {
  let takenOver = false;
  for await (const event of watchRun(agent, runId, options)) {
    if (event.type === 'output') return takenOver ? event.output : undefined;
    yield event;
    if (event.type === 'reset') takenOver = true;
    else if (!takenOver && event.type === 'chunk' && isTurnEnd(event.chunk)) return undefined;
  }
  return undefined;
}

/** Chunks that are read before others get their turn of the event loop. */
const chunksATurn = 64;

/**
 * Reads chunks, and drops them, up to the end of the turn. A model that never waits would otherwise keep the event loop
 * to itself, and nothing of what it says would leave before it is done.
 */
async function drainTurn(source: AsyncIterator<Chunk>): Promise<void> {
  for (let count = 1; ; count++) {
    const { value, done } = await source.next();
    if (done || isTurnEnd(value)) return;
    if (count % chunksATurn === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
}

/** Reads what is left, so that the turn does not wait for a reader that has gone. */
export async function drain(source: AsyncIterator<unknown>): Promise<void> {
  try {
    while (!(await source.next()).done);
  } catch {
    // What failed is in the turn's output.
  }
}

// A sub-agent's turn starts and ends within that of its caller.
function startedRun({ agent, turnStart }: Chunk): string | undefined {
  return agent === undefined ? turnStart?.snapshotId : undefined;
}

function isTurnEnd({ agent, turnEnd }: Chunk): boolean {
  return agent === undefined && turnEnd !== undefined;
}
