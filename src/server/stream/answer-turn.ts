import type { Agent } from '../../agent/spec/agent.ts';
import { abortError } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Init, Input, Output } from '../../protocol/turn.ts';
import { checkBackgroundRuns } from '../http/background-runs.ts';
import { fromAnswer, logFault } from '../http/fault.ts';
import type { RequestContext, ServerContext, TurnCall } from '../http/server-context.ts';
import type { FeedBatch, FeedEvent } from './feed.ts';
import { acquireStreamSlot, type StreamFormat, waitForAcceptance } from './stream-response.ts';
import { type ServedTurn, startTurn, type TurnOptions } from './turn.ts';

/** What to run, and the form of its response. */
export interface TurnAnswer<Event = FeedEvent> {
  readonly init?: Init | undefined;
  readonly input: Input;
  /** The form of the stream; `false` when the caller wants the output alone. */
  readonly stream: StreamFormat<Event> | false;
  /** Whether a client of this protocol can resume a dropped stream. @default true */
  readonly resumable?: boolean;
  readonly respond: (output: Output) => Response;
  /** @default as the option `onDisconnect` says */
  readonly stopWithReader?: boolean | undefined;
  /** Observes the events of a stream, or turns them into those of a protocol. */
  readonly decorate?: (events: AsyncGenerator<FeedBatch>) => AsyncIterable<readonly Event[]>;
}

/** Runs a turn for a caller; refusals are thrown, so that they get their HTTP status. */
export async function answerTurn<Event = FeedEvent>(
  serverContext: ServerContext,
  c: RequestContext,
  { agent, caller }: TurnCall,
  { stream, respond, decorate, ...answer }: TurnAnswer<Event>,
): Promise<Response> {
  if (answer.input.detach === true) await checkBackgroundRuns(serverContext, caller);
  const release = serverContext.turns.take(caller.principal);
  const slot = takeOrRelease(() => acquireStreamSlot(serverContext, c), release);
  const turn = beginTurn(serverContext, c, {
    ...answer,
    agent,
    caller,
    reader: slot.signal,
    release,
  });
  try {
    if (stream) {
      await waitForAcceptance(serverContext, turn.accepted);
      // Without a translation, the events of the feed are those of the protocol.
      const events = decorate?.(turn.events) ?? (turn.events as AsyncIterable<never>);
      return slot.respond(events, stream, { isGathered: true });
    }
    const output = await outputOfTurn(turn, slot.signal);
    slot.leave();
    return respond(output);
  } catch (error) {
    slot.leave();
    throw error;
  }
}

function takeOrRelease<T>(take: () => T, release: () => void): T {
  try {
    return take();
  } catch (error) {
    release();
    throw error;
  }
}

/** Starts a turn within the limits of its caller, and keeps the server's end waiting for it. */
export function beginTurn(
  serverContext: ServerContext,
  c: RequestContext,
  {
    agent,
    caller,
    release = serverContext.turns.take(caller.principal),
    stopWithReader = serverContext.options.onDisconnect === 'abort',
    ...turn
  }: Omit<TurnOptions, 'stopWithReader' | 'onFault'> & {
    readonly agent: Agent;
    /** Gives back the caller's slot for a turn. @default one is taken */
    readonly release?: () => void;
    /** @default as the option `onDisconnect` says */
    readonly stopWithReader?: boolean | undefined;
  },
): ServedTurn {
  const started = startTurn(agent, {
    ...turn,
    caller,
    stopWithReader,
    onFault: (error) => logFault(serverContext, error, c.get('logged')),
  });
  void serverContext.lifetime.track(started.done.then(release));
  serverContext.options.waitUntil?.(started.ended());
  return started;
}

// Reads the events of a turn for a caller who only wants its output.
async function outputOfTurn({ events }: ServedTurn, reader: AbortSignal): Promise<Output> {
  let snapshotId: string | undefined;
  for await (const batch of events) {
    for (const event of batch) {
      if (event.type === 'output') return event.output;
      if (event.type === 'error') throw fromAnswer(event.error);
      if (event.type === 'chunk') snapshotId ??= event.chunk.turnStart?.snapshotId;
    }
  }
  // The client has left, or the server shuts down before the turn ends: name the snapshot where the result will be.
  const { status, message, details } = abortError(reader);
  throw new WaymarkError(status, message, {
    details: snapshotId === undefined ? details : { retryAfter: 1, snapshotId },
  });
}
