import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/** What a Node server tells of the line a request came on; nothing elsewhere. */
export interface NodeBindings {
  readonly incoming?: IncomingMessage | Http2ServerRequest | undefined;
  readonly outgoing?: ServerResponse | Http2ServerResponse | undefined;
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
  const socket = env?.outgoing?.socket;
  if (!env?.outgoing || !socket) return;
  socket.setTimeout(ms);
  env.outgoing.once('finish', () => socket.setTimeout(0));
}
