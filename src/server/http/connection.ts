import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterThisTurn } from '../../core/platform.ts';
import type { HandlerOptions } from './handler-options.ts';
import type { ServerLimits } from './limits.ts';

/** The connection of a request in a Node server; empty elsewhere. */
export interface NodeBindings {
  readonly incoming?: IncomingMessage | Http2ServerRequest | undefined;
  readonly outgoing?: ServerResponse | Http2ServerResponse | undefined;
  /** Only in `serve`, which owns the connection. */
  readonly own?: OwnLine | undefined;
}

/** A line that this server alone reads and writes. */
interface OwnLine {
  readonly headers: IncomingHttpHeaders;
  /** Calls a function when the line closes, also behind a complete response. Calls it at once if the line is closed. */
  onClose(listener: () => void): void;
  /** Begins a response of frames, without the stream that others would need around them. */
  writeFrames(headers: Readonly<Record<string, string>>, source: FrameSource): FrameSink;
  /** The response to return once the frames are written here. */
  readonly answered: Response;
}

/** A request with the connection that it came on. */
export interface RequestLine {
  readonly req: { readonly raw: Request };
  readonly env: NodeBindings | undefined;
}

/** The headers of a request; on a line of our own as Node has them: what is made of them costs as much as a short answer. */
export function headersOf(c: RequestLine): Headers | IncomingHttpHeaders {
  return c.env?.own?.headers ?? c.req.raw.headers;
}

export function headerOf(c: RequestLine, name: string): string | undefined {
  const headers = headersOf(c);
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return (typeof value === 'object' ? value?.join(', ') : value) ?? undefined;
}

/** The address at the other end, where it is known. */
export function remoteAddress(env: NodeBindings | undefined): string | undefined {
  return env?.incoming?.socket?.remoteAddress;
}

/** Cuts the connection, where that is possible. */
export function cutOf(env: NodeBindings | undefined): (() => void) | undefined {
  const outgoing = env?.outgoing;
  return outgoing && (() => void outgoing.destroy());
}

/** Cuts the connection of a client that does not read the last bytes. */
export function cutWhenIdle(env: NodeBindings | undefined, ms: number): void {
  const outgoing = env?.outgoing;
  if (outgoing === undefined) return;
  const watch = (): void => {
    const { socket } = outgoing;
    if (!socket || outgoing.writableFinished) return;
    socket.setTimeout(ms);
    // Before Node sets the time for which it keeps the line for another request.
    outgoing.prependOnceListener('finish', () => socket.setTimeout(0));
  };
  // An answer that is taken at once, as most are, needs no timer.
  if (outgoing.socket) afterThisTurn(watch);
  // With several requests that were sent at once, the next answer gets the connection when this one is read.
  else outgoing.once('socket', watch);
}

/** Where the frames of a response go. */
export interface FrameSink {
  /** Whether to wait for `pulled` before the next write. */
  isFull(): boolean;
  write(text: string): void;
  close(): void;
  fail(): void;
}

/** Reports of a {@link FrameSink} about its client. */
export interface FrameSource {
  /** There is room again. */
  pulled(): void;
  /** The client has disconnected. */
  left(): void;
}

/** The address that limits count by: what `clientAddress` says, else the other end of the connection. */
export function addressOf(
  { clientAddress }: Pick<HandlerOptions, 'clientAddress'>,
  request: Request,
  env: NodeBindings | undefined,
): string | undefined {
  const address = clientAddress ? clientAddress(request) : remoteAddress(env);
  return address === undefined ? undefined : networkOf(address);
}

/** The address range of one client: an IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  const [plain = ''] = address.toLowerCase().split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain);
  if (mapped?.[1]) return mapped[1];
  if (!plain.includes(':')) return plain;
  const [head = '', tail = ''] = plain.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === '' ? [] : tail.split(':');
  const zeros = plain.includes('::') ? Math.max(0, 8 - front.length - back.length) : 0;
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...back];
  return `${groups.slice(0, 4).map(withoutZeros).join(':')}::/64`;
}

function withoutZeros(group: string): string {
  return group.replace(/^0+(?=.)/, '');
}

/** Milliseconds that a client has to say who it is before the limit of its address applies. */
const grace = 1000;

/** The connections on which no request has been authenticated yet. */
export interface PendingConnections {
  /**
   * Takes a new connection. Many may come from one address in the same moment, from a proxy for example, so those of an address are
   * counted only once they had time to be known. When there are too many then, or too many in all, the oldest are cut.
   */
  add(socket: Socket): void;
  /** A request on this connection is being authenticated; gives what ends that. Nothing for a connection that is known. */
  asks(socket: Duplex): (() => void) | undefined;
  /** A request on this connection was authenticated. */
  know(socket: Duplex | undefined): void;
}

interface Pending {
  readonly address: string;
  readonly since: number;
  isAsking: boolean;
}

/** Limits the connections of unknown clients, in all and per address. */
export function createPendingConnections({
  unauthenticated,
  unauthenticatedPerAddress,
}: Pick<ServerLimits, 'unauthenticated' | 'unauthenticatedPerAddress'>): PendingConnections {
  // Both in the order in which they came.
  const pending = new Map<Duplex, Pending>();
  const byAddress = new Map<string, Set<Duplex>>();
  let willTrim = false;

  const forget = (socket: Duplex): void => {
    const known = pending.get(socket);
    if (known === undefined) return;
    pending.delete(socket);
    const peers = byAddress.get(known.address);
    peers?.delete(socket);
    if (peers?.size === 0) byAddress.delete(known.address);
  };
  const cut = (socket: Duplex): void => {
    forget(socket);
    socket.destroy();
  };
  /** Cuts the oldest connections of each address that has too many, and looks again as long as one has. */
  const trim = (): void => {
    willTrim = false;
    const due = performance.now() - grace;
    for (const peers of byAddress.values()) {
      let left = peers.size - unauthenticatedPerAddress;
      if (left > 0) trimLater();
      for (const socket of peers) {
        const { since, isAsking } = pending.get(socket) ?? { since: due, isAsking: true };
        if (left <= 0 || since > due) break;
        if (isAsking) continue;
        cut(socket);
        left--;
      }
    }
  };
  const trimLater = (): void => {
    // After a stall, first what has arrived meanwhile is read.
    if (!willTrim) setTimeout(() => setImmediate(trim), grace).unref();
    willTrim = true;
  };

  return {
    add(socket) {
      const [oldest] = pending.keys();
      if (oldest && pending.size >= unauthenticated) cut(oldest);
      const address = networkOf(socket.remoteAddress ?? '');
      const peers = byAddress.get(address) ?? new Set();
      byAddress.set(address, peers.add(socket));
      pending.set(socket, { address, since: performance.now(), isAsking: false });
      socket.once('close', () => forget(socket));
      if (peers.size > unauthenticatedPerAddress) trimLater();
    },
    asks(socket) {
      const known = pending.get(socket);
      if (known === undefined) return undefined;
      known.isAsking = true;
      return () => {
        known.isAsking = false;
      };
    },
    know: (socket) => socket && forget(socket),
  };
}
