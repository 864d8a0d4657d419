import { type LinkedSignal, linkLightly } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { afterThisTurn } from '../../core/platform.ts';
import {
  cutOf,
  cutWhenIdle,
  type FrameSource,
  headerOf,
  type NodeBindings,
  type RequestLine,
} from '../http/connection.ts';
import { safetyHeaders } from '../http/json-response.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
import type { FeedEvent } from './feed.ts';
import {
  FramePump,
  type FrameStreamEnd,
  type FrameStreamOptions,
  frameStream,
} from './frame-stream.ts';

/** How one protocol writes a stream. */
export interface StreamFormat<Event> {
  readonly encode: (event: Event) => string;
  readonly keepAlive: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A slot for one more client. */
interface ReaderSeat {
  /** Aborts when the client has disconnected, or the server shuts down. */
  readonly signal: AbortSignal;
  /** Responds with the events; the slot is released when they have ended. */
  respond<Event>(
    batches: AsyncIterable<readonly Event[]>,
    format: StreamFormat<Event>,
    options?: Pick<FrameStreamOptions<Event>, 'isGathered'>,
  ): Response;
  /** Releases the slot when nothing is streamed after all. */
  leave(): void;
}

/**
 * Takes a seat, or is `RESOURCE_EXHAUSTED` when there are too many readers. A reader of what others work on leaves as
 * soon as the server begins to shut down; one whose own turn runs may stay for a while.
 */
export function acquireStreamSlot(
  serverContext: ServerContext,
  c: RequestContext,
  { own = true }: { readonly own?: boolean } = {},
): ReaderSeat {
  if (c.req.method === 'HEAD') {
    throw new WaymarkError('INVALID_ARGUMENT', 'Streams do not support HEAD. Use GET.');
  }
  const { lifetime, streams } = serverContext;
  const release = streams.take(c.get('caller').principal);
  const end = own ? lifetime.ending : lifetime.closing;
  // On a line of our own the signal of the request is not needed, and so not created.
  const link = c.env?.own ? linkLightly(end) : linkLightly(end, c.req.raw.signal);
  return new Seat(serverContext, c, { link, release });
}

class Seat implements ReaderSeat {
  readonly #serverContext: ServerContext;
  readonly #context: RequestContext;
  readonly #link: LinkedSignal;
  readonly #release: () => void;
  readonly #leave: () => void;
  readonly #started: number;
  #pump: (FrameSource & { stop(): void }) | undefined;
  #sent = 0;
  #isOver = false;

  constructor(
    serverContext: ServerContext,
    c: RequestContext,
    { link, release }: { readonly link: LinkedSignal; readonly release: () => void },
  ) {
    this.#serverContext = serverContext;
    this.#context = c;
    this.#link = link;
    this.#release = release;
    this.#started = serverContext.clock.now();
    this.#leave = serverContext.presence.enter({
      caller: c.get('caller'),
      request: c.req.raw,
      end: (reason) => {
        link.abort(reason);
        this.#pump?.stop();
      },
    });
    c.env?.own?.onClose(() => this.#lost());
  }

  get signal(): AbortSignal {
    return this.#link.signal;
  }

  leave(): void {
    this.#isOver = true;
    this.#release();
    this.#leave();
    this.#link.release();
  }

  respond<Event>(
    batches: AsyncIterable<readonly Event[]>,
    { encode, keepAlive, headers }: StreamFormat<Event>,
    gathering?: Pick<FrameStreamOptions<Event>, 'isGathered'>,
  ): Response {
    const { clock, limits, options } = this.#serverContext;
    const { env } = this.#context;
    const frames: FrameStreamOptions<Event> = {
      ...gathering,
      clock,
      encode: (event) => {
        this.#sent++;
        return encode(event);
      },
      keepAlive,
      keepAliveMs: options.keepAlive ?? 15_000,
      stallMs: limits.stallTimeout,
      cut: cutOf(env),
      onEnd: (how) => this.#end(how),
    };
    const line = env?.own;
    const pump = new FramePump(batches, frames);
    this.#pump = pump;
    if (line === undefined) {
      const body = frameStream(pump, frames);
      return new Response(body, { headers: { ...headers, ...startAtOnce(env) } });
    }
    const prepared = preparedHeaders(this.#serverContext, this.#context);
    pump.start(line.writeFrames(prepared ? { ...headers, ...prepared } : headers, pump));
    return line.answered;
  }

  // A line also closes behind a complete answer.
  #lost(): void {
    if (this.#isOver) return;
    this.#link.abort('The connection was closed.');
    this.#pump?.left();
  }

  #end(how: FrameStreamEnd): void {
    const { clock, limits, log } = this.#serverContext;
    const c = this.#context;
    if (how === 'complete') cutWhenIdle(c.env, limits.stallTimeout);
    else this.#link.abort(new WaymarkError('CANCELLED', 'The reader has left.'));
    this.leave();
    log({
      level: how === 'stalled' || how === 'failed' ? 'warn' : 'info',
      time: clock.now(),
      msg: 'stream',
      ...c.get('logged'),
      end: how,
      events: this.#sent,
      ms: clock.now() - this.#started,
    });
  }
}

// The CORS headers are set by then, except for the one that comes last.
function preparedHeaders(
  { options: { cors } }: ServerContext,
  c: RequestContext,
): Record<string, string> | undefined {
  if (cors === undefined) return undefined;
  return { ...Object.fromEntries(c.res.headers), ...(cors.origins !== true && { vary: 'Origin' }) };
}

// Node's adapter looks for the end of a body before it sends anything, unless a header says that there is no length. Other
// versions of HTTP know no such header.
function startAtOnce(env: NodeBindings | undefined): Record<string, string> {
  return env?.incoming?.httpVersion === '1.1' ? { 'transfer-encoding': 'chunked' } : {};
}

/** Waits a moment for the first event, so that a refusal can be told by the HTTP status. */
export function waitForAcceptance(
  { clock }: ServerContext,
  accepted: Promise<unknown>,
  ms = 1000,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    let stop = (): void => {
      isOver = true;
    };
    const proceed = (): void => {
      stop();
      resolve();
    };
    accepted.then(proceed, (error: unknown) => {
      stop();
      reject(error);
    });
    // Most turns are accepted in this turn of the event loop, and need no timer.
    afterThisTurn(() => {
      if (!isOver) stop = clock.every(ms, proceed);
    });
  });
}

/** Whether an event ends its feed. */
export function isFinal(event: FeedEvent): boolean {
  return event.type === 'output' || event.type === 'error';
}

/** One event of a stream of server-sent events; `data` must hold no line break, as JSON never does. */
export function sseEvent({
  event,
  id,
  data,
}: {
  readonly event?: string;
  readonly id?: string | undefined;
  readonly data: string;
}): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const place = id === undefined ? '' : `id: ${id}\n`;
  return `${name}${place}data: ${data}\n\n`;
}

/** A comment, which readers skip: it keeps a silent line open. */
export const sseKeepAlive = ': keep-alive\n\n';

/** The headers of a stream that nothing in between may hold back, change or keep. */
export const sseHeaders: Readonly<Record<string, string>> = {
  ...safetyHeaders,
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** Whether a request asks for a stream of events. */
export function wantsEvents(c: RequestLine): boolean {
  return headerOf(c, 'accept')?.includes('text/event-stream') ?? false;
}
