import { type LinkedSignal, linkLightly } from '../../core/async/signal.ts';
import { invalid, WaymarkError } from '../../core/error.ts';
import { waitAtMost } from '../../core/time.ts';
import { safetyHeaders } from '../http/answer.ts';
import {
  cutOf,
  cutWhenIdle,
  type FrameSource,
  headerOf,
  type NodeBindings,
  type RequestLine,
} from '../http/connection.ts';
import type { RequestContext } from '../http/server-context.ts';
import { type FeedBatch, startingWith, throwFirstError } from './feed.ts';
import {
  FramePump,
  type FrameStreamEnd,
  type FrameStreamOptions,
  frameStream,
} from './frame-stream.ts';

export interface StreamFormat<Event> {
  readonly encode: (event: Event) => string;
  readonly keepAlive: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Takes a slot for a response, or is `RESOURCE_EXHAUSTED` when there are too many readers. The slot is released with the stream
 * that `respond` begins, or at once if it begins none. A reader of what others work on leaves as soon as the server begins to
 * shut down; one whose own turn runs may stay for a while.
 */
export async function withStreamSlot<Result>(
  c: RequestContext,
  respond: (slot: StreamSlot) => Result | Promise<Result>,
  { own = true }: { readonly own?: boolean } = {},
): Promise<Result> {
  if (c.req.method === 'HEAD') {
    throw invalid('Streams do not support HEAD. Use GET.');
  }
  const { lifetime, streams } = c.get('server');
  const release = streams.take(c.get('caller').principal);
  const end = own ? lifetime.ending : lifetime.closing;
  // On a line of our own the signal of the request is not needed, and so not created.
  const link = c.env?.own ? linkLightly(end) : linkLightly(end, c.req.raw.signal);
  const slot = new StreamSlot(c, { link, release });
  try {
    return await respond(slot);
  } finally {
    if (!slot.isStreaming) slot.leave();
  }
}

export class StreamSlot {
  readonly #context: RequestContext;
  readonly #link: LinkedSignal;
  readonly #release: () => void;
  readonly #leave: () => void;
  readonly #started: number;
  #pump: (FrameSource & { stop(): void }) | undefined;
  #sent = 0;
  #isOver = false;

  constructor(
    c: RequestContext,
    { link, release }: { readonly link: LinkedSignal; readonly release: () => void },
  ) {
    const { clock, presence } = c.get('server');
    this.#context = c;
    this.#link = link;
    this.#release = release;
    this.#started = clock.now();
    this.#leave = presence.enter({
      caller: c.get('caller'),
      request: c.req.raw,
      end: (reason) => {
        link.abort(reason);
        this.#pump?.stop();
      },
    });
    c.env?.own?.onClose(() => this.#lost());
  }

  /** Aborts when the client has disconnected, or the server shuts down. */
  get signal(): AbortSignal {
    return this.#link.signal;
  }

  get isStreaming(): boolean {
    return this.#pump !== undefined;
  }

  leave(): void {
    this.#isOver = true;
    this.#release();
    this.#leave();
    this.#link.release();
  }

  /** Responds with the events; the slot is released when they have ended. */
  respond<Event>(
    batches: AsyncIterable<readonly Event[]>,
    { encode, keepAlive, headers }: StreamFormat<Event>,
    gathering?: Pick<FrameStreamOptions<Event>, 'isGathered'>,
  ): Response {
    const { clock, limits, options } = this.#context.get('server');
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
    const prepared = preparedHeaders(this.#context);
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
    const c = this.#context;
    const { clock, limits, log } = c.get('server');
    if (how === 'complete') cutWhenIdle(c.env, limits.stallTimeout);
    else this.#link.abort(new WaymarkError('CANCELLED', 'The reader has left.'));
    this.leave();
    log(how === 'stalled' || how === 'failed' ? 'warn' : 'info', 'stream', {
      ...c.get('logged'),
      end: how,
      events: this.#sent,
      ms: clock.now() - this.#started,
    });
  }
}

// The CORS headers are set by then, except for the one that comes last.
function preparedHeaders(c: RequestContext): Record<string, string> | undefined {
  const { cors } = c.get('server').options;
  if (cors === undefined) return undefined;
  return { ...Object.fromEntries(c.res.headers), ...(cors.origins !== true && { vary: 'Origin' }) };
}

// Node's adapter looks for the end of a body before it sends anything, unless a header says that there is no length. Other
// versions of HTTP know no such header.
function startAtOnce(env: NodeBindings | undefined): Record<string, string> {
  return env?.incoming?.httpVersion === '1.1' ? { 'transfer-encoding': 'chunked' } : {};
}

/** A feed whose first batch was waited for a moment, so that a refusal can be told by the HTTP status. */
export async function acceptedFeed(
  c: RequestContext,
  feed: AsyncGenerator<FeedBatch>,
  ms = 1000,
): Promise<AsyncIterableIterator<FeedBatch>> {
  const first = feed.next();
  await waitAtMost(c.get('server').clock, ms, first.then(throwFirstError));
  return startingWith(first, feed);
}

/** A value as one event of a stream of server-sent events. */
export function sseJson(value: object, event?: string, id?: string): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const place = id === undefined ? '' : `id: ${id}\n`;
  return `${name}${place}data: ${JSON.stringify(value)}\n\n`;
}

/** Server-sent events of a protocol. A comment, which readers skip, keeps a silent line open. */
export function sseFormat<Event>(
  encode: (event: Event) => string,
  headers?: Readonly<Record<string, string>>,
): StreamFormat<Event> {
  return { encode, keepAlive: ': keep-alive\n\n', headers: { ...sseHeaders, ...headers } };
}

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
