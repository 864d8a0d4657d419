import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A line to a server that can be cut like a cable. */
export interface CuttableLine extends AsyncDisposable {
  readonly url: string;
  /** Ends every connection that is open now, in the middle of whatever it carries. */
  cut(): void;
  /** Stops forwarding on open connections without closing them: like a laptop that sleeps, or a lost network. */
  freeze(): void;
}

/** Passes bytes on to a server on this machine. */
export async function cuttableLine(target: string): Promise<CuttableLine> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return {
    freeze,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
