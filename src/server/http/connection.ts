import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { afterThisTurn } from '../../core/platform.ts';
import type { FrameSink, FrameSource } from './frame-sink.ts';

/** What a Node server tells of the line a request came on; nothing elsewhere. */
export interface NodeBindings {
  readonly incoming?: IncomingMessage | Http2ServerRequest | undefined;
  readonly outgoing?: ServerResponse | Http2ServerResponse | undefined;
  /** Only in `serve`, which owns the connection. */
  readonly own?: OwnLine | undefined;
}

/** A line that this server alone reads and writes. */
export interface OwnLine {
  readonly headers: IncomingHttpHeaders;
  /** Calls a function when the line closes, also behind a complete response. Calls it at once if the line is closed. */
  onClose(listener: () => void): void;
  /** Whether a body of this length has arrived as a whole. It is then read from the request without waiting for the network. */
  hasBody(length: number): Promise<boolean>;
  /** Begins a response of frames, without the stream that others would need around them. */
  writeFrames(headers: Readonly<Record<string, string>>, source: FrameSource): FrameSink;
  /** What is answered once the response is written here. */
  readonly answered: Response;
}

/** The headers of a request; on a line of our own as Node has them: what is made of them costs as much as a short answer. */
export function headersOf(c: {
  readonly req: { readonly raw: Request };
  readonly env: NodeBindings | undefined;
}): Headers | IncomingHttpHeaders {
  return c.env?.own?.headers ?? c.req.raw.headers;
}

/** One header of a request. */
export function headerOf(c: Parameters<typeof headersOf>[0], name: string): string | undefined {
  const headers = headersOf(c);
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return (typeof value === 'object' ? value?.join(', ') : value) ?? undefined;
}

/** The address at the other end, where it is known. */
export function remoteAddress(env: NodeBindings | undefined): string | undefined {
  return env?.incoming?.socket?.remoteAddress;
}

/** How to cut the line, where that is possible. */
export function cutOf(env: NodeBindings | undefined): (() => void) | undefined {
  const outgoing = env?.outgoing;
  return outgoing && (() => void outgoing.destroy());
}

/** Cuts the line of a reader that does not take the last bytes either. */
export function cutWhenIdle(env: NodeBindings | undefined, ms: number): void {
  const outgoing = env?.outgoing;
  if (!outgoing?.socket) return;
  // What is taken at once, as most answers are, needs no timer.
  afterThisTurn(() => {
    const { socket } = outgoing;
    if (!socket || outgoing.writableFinished) return;
    socket.setTimeout(ms);
    // Before Node sets the time for which it keeps the line for another request.
    outgoing.prependOnceListener('finish', () => socket.setTimeout(0));
  });
}
