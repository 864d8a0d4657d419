import { linkSignals, throwIfAborted } from '../core/async/signal.ts';
import { type ErrorBody, isWaymarkError, WaymarkError } from '../core/error.ts';
import type { SseEvents } from '../protocol/frames.ts';
import type { Chunk, Output, Reset } from '../protocol/turn.ts';
import { foreignResponse, fromErrorBody, responseError } from './remote-error.ts';
import { knowsRequests } from './request-id.ts';
import { createSseParser, type SseMessage } from './sse-parser.ts';
import {
  createIdleTimeout,
  isPassing,
  maxTries,
  type RemoteRequest,
  type Transport,
} from './transport.ts';

/** A run to follow, started by a first request or known by its id, and the follower's position. */
interface RunLine {
  readonly agent: string;
  readonly artifacts?: ArtifactForm;
  readonly start?: RemoteRequest;
  /** Lets the server send the whole output, including what the run's snapshot does not contain. */
  readonly requestId?: string | undefined;
  readonly snapshotId?: string | undefined;
  readonly after?: string | undefined;
}

type ArtifactForm = 'whole' | 'patches' | undefined;

/** The query that asks a server for edits instead of whole artifacts. Earlier versions ignore it. */
export function artifactQuery(artifacts: ArtifactForm): Pick<RemoteRequest, 'query'> {
  return artifacts === 'patches' ? { query: { artifacts } } : {};
}

/**
 * The events of a run up to the final one, over as many lines as it takes: one that drops is taken up after the last
 * event that came, without gap or repeat. Throws when the server refuses, or cannot be reached any more.
 */
export async function* followRun(
  transport: Transport,
  line: RunLine,
  signal?: AbortSignal,
): AsyncGenerator<RunEvent, void, undefined> {
  const run: Place = { ...line };
  let hasAnswered = false;
  let request = line.start ?? watchRequest(run);
  for (let tries = 1; ; tries++) {
    const opened = transport.clock.now();
    const failure: Failure = { isLost: true };
    for await (const event of readLine(transport, request, failure, signal)) {
      tries = 1;
      hasAnswered = true;
      yield noted(run, event);
      if (event.type === 'output' || event.type === 'error') return;
    }
    throwIfAborted(signal);
    // A connection that was quiet but lasted counts as a success.
    if (transport.clock.now() - opened > steady) tries = 1;
    const delay = transport.reconnect.delayOf(tries);
    const { error, retryAfter = 0 } = failure;
    // A wrong address stays wrong; one that has answered before may have a proxy in front of it that answers now.
    if (error && !isPassing(error.status)) throw error;
    if (error && failure.isForeign && !hasAnswered) throw error;
    if (delay === undefined) throw lost(run, error);
    if (canBeTakenUp(run)) request = watchRequest(run);
    else {
      const isRepeatable =
        failure.isLost && run.start && run.snapshotId === undefined && tries < maxTries;
      // The server joins a turn whose start was not seen to its first run by its request id.
      const isKnown = isRepeatable && (await knowsRequests(transport, run.agent, signal));
      throwIfAborted(signal);
      if (!isKnown) throw lost(run, error);
    }
    await transport.clock.sleep(Math.max(delay, retryAfter), signal);
  }
}

const steady = 30_000;

interface Place extends RunLine {
  snapshotId?: string | undefined;
  after?: string | undefined;
  /** The structured output of the last turn that ended. */
  output?: Output['output'];
}

/** Why a line ended without a final event. */
interface Failure {
  error?: WaymarkError;
  retryAfter?: number;
  /** The server has not answered, as far as can be seen: it was cut, or a gateway answered instead. */
  isLost: boolean;
  /** Something else than a Waymark server has answered. */
  isForeign?: boolean;
}

/** The statuses of gateways that have lost the server. */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 504]);

async function* readLine(
  { fetch, clock, reconnect }: Transport,
  request: RemoteRequest,
  failure: Failure,
  signal: AbortSignal | undefined,
): AsyncGenerator<RunEvent, void, undefined> {
  const line = linkSignals(signal);
  const idleTimeout = createIdleTimeout({ clock, reconnect }, () => line.abort());
  try {
    const response = await fetch({ ...request, signal: line.signal });
    if (!response.ok) {
      failure.isLost = gatewayStatuses.has(response.status);
      failure.error = await responseError(response);
      failure.retryAfter = Number(response.headers.get('retry-after') ?? 0) * 1000 || 0;
    } else if (!isEventStream(response)) {
      failure.isLost = false;
      failure.isForeign = true;
      failure.error = foreignResponse(response, 'UNKNOWN');
    } else if (response.body) {
      yield* readRunEvents(response.body, idleTimeout.heard);
    }
  } catch (error) {
    // A body that breaks throws whatever the platform throws; only our own errors say more than "cut".
    if (isWaymarkError(error) && !line.signal.aborted) failure.error = error;
  } finally {
    idleTimeout.end();
    line.release();
  }
}

// A `fetch` of the user's own may leave the type out.
function isEventStream({ headers }: Response): boolean {
  return (headers.get('content-type') ?? 'text/event-stream').startsWith('text/event-stream');
}

function watchRequest(place: Place): RemoteRequest {
  const { agent, artifacts, snapshotId = '', after, requestId } = place;
  return {
    operation: 'watch',
    params: { agent, snapshot: snapshotId },
    ...artifactQuery(artifacts),
    headers: {
      accept: 'text/event-stream',
      ...(after && { 'last-event-id': after }),
      ...(requestId && { 'idempotency-key': requestId }),
    },
  };
}

/** Remembers where the follower is. An output that was told from a snapshot gets what only the turn itself knew. */
function noted(place: Place, event: RunEvent): RunEvent {
  if (event.type === 'chunk' || event.type === 'reset') place.after = event.id ?? place.after;
  if (event.type === 'chunk') {
    const { agent, turnEnd } = event.chunk;
    place.snapshotId = ownTurnStart(event.chunk)?.snapshotId ?? place.snapshotId;
    if (agent === undefined && turnEnd) place.output = turnEnd.output;
  } else if (event.type === 'output' && place.output !== undefined && !event.output.error) {
    return { ...event, output: { output: place.output, ...event.output } };
  }
  return event;
}

/** The start of a turn of this agent; not one of its sub-agents', whose chunks come along. */
export function ownTurnStart({ agent, turnStart }: Chunk): Chunk['turnStart'] {
  return agent === undefined ? turnStart : undefined;
}

// A turn whose events have no ids is not kept anywhere.
function canBeTakenUp({ start, snapshotId, after }: Place): boolean {
  return snapshotId !== undefined && (after !== undefined || start === undefined);
}

function lost({ snapshotId }: Place, cause: WaymarkError | undefined): WaymarkError {
  return snapshotId === undefined
    ? (cause ??
        new WaymarkError(
          'UNAVAILABLE',
          'The connection broke before the server confirmed the turn. Look at the session before you send the turn again.',
        ))
    : new WaymarkError(
        'UNAVAILABLE',
        `The connection broke and could not be restored. The turn may still be running: see snapshot "${snapshotId}".`,
        { details: { snapshotId }, cause },
      );
}

/** An event of a run, over any connection. `output` and `error` are the last. */
export type RunEvent =
  | { readonly type: 'chunk'; readonly id?: string; readonly chunk: Chunk }
  | ({ readonly type: 'reset'; readonly id: string } & Readonly<Reset>)
  | { readonly type: 'output'; readonly output: Output }
  | { readonly type: 'error'; readonly error: WaymarkError };

/** The events of an SSE response until it ends or breaks. The caller checks whether the final event arrived. */
async function* readRunEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<RunEvent, void, undefined> {
  const parser = createSseParser();
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes();
      for (const message of parser.push(value)) {
        const event = toRunEvent(message);
        if (event) yield event;
      }
    }
  } finally {
    // Left early: the server should know. A broken body cannot be cancelled, and need not be.
    reader.cancel().catch(() => {});
  }
}

/** Converts an SSE message to an event. Kinds that a later server may add are ignored. */
function toRunEvent({ event, data, id }: SseMessage): RunEvent | undefined {
  const name = event as keyof SseEvents;
  switch (name) {
    case 'chunk': {
      const chunk: Chunk = JSON.parse(data);
      return id === undefined ? { type: 'chunk', chunk } : { type: 'chunk', id, chunk };
    }
    case 'reset': {
      const reset: SseEvents['reset'] = JSON.parse(data);
      return { ...reset, type: 'reset', id: id ?? '' };
    }
    case 'output':
      return { type: 'output', output: JSON.parse(data) };
    case 'error': {
      const body: ErrorBody = JSON.parse(data);
      const error = fromErrorBody(body);
      return error && { type: 'error', error };
    }
    default:
      name satisfies never;
      return undefined;
  }
}
