import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { networkOf } from './address.ts';
import type { ServerLimits } from './limits.ts';

/** The connections on which no request has been authenticated yet. */
export interface PendingConnections {
  /** Takes a new connection. When there are too many, the oldest one is cut: a real client is known within moments. */
  add(socket: Socket): void;
  /** A request on this connection was authenticated. */
  know(socket: Duplex | undefined): void;
  readonly size: number;
}

/** Limits the connections of unknown clients, in all and per address. */
export function createPendingConnections({
  unauthenticated,
  unauthenticatedPerAddress,
}: Pick<ServerLimits, 'unauthenticated' | 'unauthenticatedPerAddress'>): PendingConnections {
  // Both in the order in which they came.
  const addresses = new Map<Duplex, string>();
  const byAddress = new Map<string, Set<Duplex>>();

  const forget = (socket: Duplex): void => {
    const address = addresses.get(socket);
    if (address === undefined) return;
    addresses.delete(socket);
    const peers = byAddress.get(address);
    peers?.delete(socket);
    if (peers?.size === 0) byAddress.delete(address);
  };
  const cutFirst = (sockets: Iterable<Duplex>): void => {
    const [oldest] = sockets;
    if (!oldest) return;
    forget(oldest);
    oldest.destroy();
  };

  return {
    get size() {
      return addresses.size;
    },
    add(socket) {
      const address = networkOf(socket.remoteAddress ?? '');
      const { size = 0 } = byAddress.get(address) ?? {};
      if (size >= unauthenticatedPerAddress) cutFirst(byAddress.get(address) ?? []);
      else if (addresses.size >= unauthenticated) cutFirst(addresses.keys());
      const peers = byAddress.get(address) ?? new Set();
      byAddress.set(address, peers.add(socket));
      addresses.set(socket, address);
      socket.once('close', () => forget(socket));
    },
    know: (socket) => socket && forget(socket),
  };
}
