import type { InvokeOptions } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { abortError, linkSignals } from '../../core/async/signal.ts';
import { invalid, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Init, Input, Output } from '../../protocol/turn.ts';
import { toWireError } from '../http/answer.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { headerOf, type RequestLine } from '../http/connection.ts';
import { fromAnswer } from '../http/log.ts';
import {
  logRequestFault,
  type OpenCall,
  type RequestContext,
  type ServerContext,
} from '../http/server-context.ts';
import { cursorFeed, type FeedBatch, type FeedEvent, toPublicOutput } from './feed.ts';
import { acceptedFeed, type StreamFormat, withStreamSlot } from './stream-response.ts';

/** A turn that a server runs, and its caller. */
interface TurnOptions extends Pick<OpenCall, 'agent' | 'caller'> {
  readonly input: Input;
  readonly init?: Init | undefined;
  /** Aborts when the reader has left, or the server ends. */
  readonly reader: AbortSignal;
  /** Whether the turn is stopped when its reader leaves. @default as the option `onDisconnect` says */
  readonly stopWithReader?: boolean | undefined;
  /**
   * Whether a stream that is cut can be taken up again, and so may end without a final event.
   * @default true, where the agent's runs can be watched
   */
  readonly resumable?: boolean;
}

/**
 * Starts a turn within the limits of its caller, and keeps the server's end waiting for it. It continues without its client if the
 * result can be fetched later. Gives the events, up to an `output` or `error`; they end without one only when the reader has left.
 */
export function beginTurn(
  c: RequestContext,
  { agent, caller, input, init, reader, stopWithReader, resumable = true }: TurnOptions,
): AsyncGenerator<FeedBatch> {
  const { turns, lifetime, options } = c.get('server');
  const release = turns.take(caller.principal);
  const { watchable, stateManagement } = agent.metadata;
  // A state that only the client holds is lost with the client.
  const isStopped = stopWithReader ?? options.onDisconnect === 'abort';
  const link = isStopped || stateManagement === 'client' ? linkSignals(reader) : undefined;
  const turn = internalsOf(agent).stream(input, {
    ...invokeOptions(init, caller),
    accept: watchable,
    ...(link && { signal: link.signal }),
  });
  // A detached turn is only reported; to see its events, watch it.
  const watched = watchable && input.detach !== true;
  const output = turn.settled();
  const end = (): void => {
    link?.release();
    release();
  };
  void lifetime.track(output.then(end, end));
  const ended = async (): Promise<void> => {
    const { finishReason, snapshotId } = await output;
    if (finishReason !== 'detached' || snapshotId === undefined) return;
    await agent.wait(snapshotId, ownerOf(caller));
  };
  options.waitUntil?.(ended().catch(() => {}));
  const batches = cursorFeed(turn.cursor, { agent, ...ownerOf(caller), reader, watched });
  return turnEvents(c, {
    sent: turn.sent,
    batches,
    output,
    reader,
    resumable: watched && resumable,
  });
}

/** The options of a call that begins a turn: what a client sent, and who it is. */
export function invokeOptions(
  init: Init | undefined,
  { principal, context }: Caller,
): InvokeOptions {
  return { ...defined({ ...init, owner: principal, context }), remote: true };
}

interface BegunTurn extends Required<Pick<TurnOptions, 'reader' | 'resumable'>> {
  readonly sent: Promise<void>;
  readonly batches: ReturnType<typeof cursorFeed>;
  readonly output: Promise<Output>;
}

async function* turnEvents(
  c: RequestContext,
  { sent, batches, output, reader, resumable }: BegunTurn,
): AsyncGenerator<FeedBatch> {
  try {
    await sent;
    const elsewhere = yield* batches;
    if (!reader.aborted)
      yield [{ type: 'output', output: elsewhere ?? toPublicOutput(await output) }];
    else if (!resumable) throw abortError(reader);
  } catch (error) {
    if (!reader.aborted) {
      logRequestFault(c, error);
      yield [{ type: 'error', error: toWireError(error) }];
    } else if (!resumable) yield [{ type: 'error', error: toWireError(abortError(reader)) }];
  }
}

interface TurnAnswer<Event = FeedEvent> {
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
  readonly decorate?: (events: AsyncIterable<FeedBatch>) => AsyncIterable<readonly Event[]>;
}

/** Runs a turn for a caller; refusals are thrown, so that they get their HTTP status. */
export async function answerTurn<Event = FeedEvent>(
  c: RequestContext,
  { agent, caller }: OpenCall,
  { stream, respond, decorate, ...answer }: TurnAnswer<Event>,
): Promise<Response> {
  const server = c.get('server');
  if (answer.input.detach === true) await checkBackgroundRuns(server, caller);
  // Check capacity only: the slot is taken when the turn begins.
  server.turns.take(caller.principal)();
  return await withStreamSlot(c, async (slot) => {
    const turn = beginTurn(c, { ...answer, agent, caller, reader: slot.signal });
    if (!stream) return respond(await outputOfTurn(turn, slot.signal));
    const feed = await acceptedFeed(c, turn);
    // Without a translation, the events of the feed are those of the protocol.
    const events = decorate?.(feed) ?? (feed as AsyncIterable<never>);
    return slot.respond(events, stream, { isGathered: true });
  });
}

// Reads the events of a turn for a caller who only wants its output.
async function outputOfTurn(
  events: AsyncGenerator<FeedBatch>,
  reader: AbortSignal,
): Promise<Output> {
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

/**
 * Starts a turn in the background within the limits of its caller, and keeps the server's end waiting for it. The turn survives
 * this process.
 */
export async function startRun(
  c: RequestContext,
  { agent, caller }: OpenCall,
  init: Init,
  input: Input,
): Promise<{ readonly id: string }> {
  const server = c.get('server');
  await checkBackgroundRuns(server, caller);
  const { requestId, ...rest } = input;
  const options = { ...invokeOptions(init, caller), ...defined({ requestId }) };
  const run = await agent.start(rest, options);
  server.options.waitUntil?.(agent.wait(run.id, ownerOf(caller)).catch(() => {}));
  return run;
}

/**
 * Refuses one more background run of a principal that has as many as it may. The store is asked, so that runs that other
 * processes work on, or that wait in a queue, count as well.
 */
export async function checkBackgroundRuns(
  { app, limits }: ServerContext,
  { principal }: Caller,
): Promise<void> {
  if (principal === undefined) return;
  const most = limits.backgroundRunsPerPrincipal;
  const agents = app.agents().filter(({ metadata }) => metadata.detachable);
  const runs = await Promise.all(agents.map((agent) => agent.listRuns({ owner: principal })));
  if (runs.flatMap(({ items }) => items).filter(({ mode }) => mode === 'detached').length < most)
    return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `You have ${most} background runs, which is the limit. Try again when one has ended.`,
    { details: { retryAfter: 10 } },
  );
}

export function requestIdOf(c: RequestLine): string | undefined {
  return headerOf(c, 'idempotency-key');
}

/** The input of a turn under its idempotency key, which the header or the body may name. They must not differ. */
export function underRequestId(
  input: Input,
  header: string | undefined,
  inBody?: string | undefined,
): Input {
  const requestId = header ?? inBody ?? input.requestId;
  if (requestId === undefined) return input;
  const isSame = (other: string | undefined): boolean => other === undefined || other === requestId;
  if (isSame(inBody) && isSame(input.requestId)) return { ...input, requestId };
  throw invalid(
    'The turn has several request ids. Send one, as the header Idempotency-Key or as requestId in the body.',
  );
}
