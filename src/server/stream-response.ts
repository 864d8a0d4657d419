import { WaymarkError } from '../core/error.ts';
import { linkSignals } from '../core/signal.ts';
import { cutOf, cutWhenIdle, type NodeBindings } from './connection.ts';
import type { FeedEvent } from './feed.ts';
import { frameStream } from './frame-stream.ts';
import type { Served, ServerContext } from './served.ts';

/** How one dialect writes a stream. */
export interface StreamFormat<Event> {
  readonly encode: (event: Event) => string;
  readonly keepAlive: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A place for one more reader. */
export interface ReaderSeat {
  /** Aborts when the reader has left, or the server ends. */
  readonly signal: AbortSignal;
  /** Answers with the events; the seat is free again when they have ended. */
  respond<Event>(batches: AsyncIterable<readonly Event[]>, format: StreamFormat<Event>): Response;
  /** Frees the seat when nothing will be streamed after all. */
  leave(): void;
}

/**
 * Takes a seat, or is `RESOURCE_EXHAUSTED` when there are too many readers. A reader of what others work on leaves as
 * soon as the server begins to shut down; one whose own turn runs may stay for a while.
 */
export function takeSeat(
  served: Served,
  c: ServerContext,
  { own = true }: { readonly own?: boolean } = {},
): ReaderSeat {
  const { limits, clock, lifetime, log, options } = served;
  if (c.req.raw.method === 'HEAD') {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'A stream has no HEAD: nobody would read it. Use GET.',
    );
  }
  const release = served.streams.take(c.get('caller').principal);
  const link = linkSignals(own ? lifetime.ending : lifetime.closing, c.req.raw.signal);
  const started = clock.now();
  const leave = (): void => {
    release();
    link.release();
  };
  return {
    signal: link.signal,
    leave,
    respond(batches, { encode, keepAlive, headers }) {
      let sent = 0;
      const body = frameStream(batches, {
        clock,
        encode: (event) => {
          sent++;
          return encode(event);
        },
        keepAlive,
        keepAliveMs: options.keepAlive ?? 15_000,
        stallMs: limits.stallTimeout,
        cut: cutOf(c.env),
        onEnd: (how) => {
          if (how === 'complete') cutWhenIdle(c.env, limits.stallTimeout);
          else link.abort(new WaymarkError('CANCELLED', 'The reader has left.'));
          leave();
          log({
            level: how === 'stalled' || how === 'failed' ? 'warn' : 'info',
            time: clock.now(),
            msg: 'stream',
            ...c.get('logged'),
            end: how,
            events: sent,
            ms: clock.now() - started,
          });
        },
      });
      return new Response(body, { headers: { ...headers, ...startAtOnce(c.env) } });
    },
  };
}

// Node's adapter looks for the end of a body before it sends anything, unless it is told that there is no length. Other
// versions of HTTP know no such header.
function startAtOnce(env: NodeBindings | undefined): Record<string, string> {
  return env?.incoming?.httpVersion === '1.1' ? { 'transfer-encoding': 'chunked' } : {};
}

/** Waits a moment for the first event, so that a refusal can be told by the HTTP status. */
export async function refusedFirst(
  { clock }: Served,
  accepted: Promise<unknown>,
  ms = 1000,
): Promise<void> {
  const waited = Promise.withResolvers<void>();
  const stop = clock.every(ms, waited.resolve);
  try {
    await Promise.race([accepted, waited.promise]);
  } finally {
    stop();
  }
}

/** Whether an event ends its feed. */
export function isFinal(event: FeedEvent): boolean {
  return event.type === 'output' || event.type === 'error';
}
