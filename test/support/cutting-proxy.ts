import { connect, createServer, type Server, type Socket } from 'node:net';

/** A proxy on this machine that breaks connections when told to. */
export interface CuttingProxy {
  readonly port: number;
  /** Lets the next thing that is sent through, and breaks the connection before the answer. */
  cutNextAnswer(): void;
  /** Breaks all connections, and refuses new ones until `heal`. */
  cutAll(): void;
  heal(): void;
  close(): Promise<void>;
}

/** Starts a proxy in front of a port. */
export async function createCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let isDown = false;
  let cutsNext = false;
  const server: Server = createServer((client) => {
    if (isDown) {
      client.destroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    let isCut = false;
    client.on('data', (data) => {
      if (cutsNext) {
        cutsNext = false;
        isCut = true;
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (isCut) client.destroy();
      else client.write(data);
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.end();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    cutNextAnswer() {
      cutsNext = true;
    },
    cutAll() {
      isDown = true;
      for (const socket of sockets) socket.destroy();
    },
    heal() {
      isDown = false;
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
