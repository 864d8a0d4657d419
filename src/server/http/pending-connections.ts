import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { networkOf } from './address.ts';
import type { ServerLimits } from './limits.ts';

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
  readonly size: number;
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
    get size() {
      return pending.size;
    },
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
