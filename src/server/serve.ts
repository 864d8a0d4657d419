import type { Server } from 'node:http';
import { once, withCaller } from '../core/async/promises.ts';
import { failedPrecondition, WaymarkError } from '../core/error.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import { systemClock } from '../core/time.ts';
import { createServerContext } from './create-fetch.ts';
import { allProtocols } from './handler.ts';
import { createPendingConnections } from './http/connection.ts';
import { type HandlerOptions, handlerOptionNames } from './http/handler-options.ts';
import { jsonLines, readableLines } from './http/log.ts';
import { isLoopback } from './http/origin.ts';
import type { ServedApp } from './http/served-app.ts';

/** How an app is served by Node. */
export interface ServeOptions extends Omit<HandlerOptions, 'basePath' | 'waitUntil'> {
  /** The port; 0 selects a free one. @default 3000 */
  readonly port?: number | undefined;
  /** The address to listen on. Anything but a loopback address needs `auth`. @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** Milliseconds that `close` waits for running turns before it ends their streams. @default 5000 */
  readonly grace?: number | undefined;
  /** The folder in whose `.genkit/runtimes` this server is registered for Genkit's development tools. Without it, the server is not registered. */
  readonly genkitProject?: string | undefined;
  /**
   * Serves Studio at `/studio`, for browsers on this machine only: the one of this package, or one from a folder.
   * Without `auth` it also records and shows the spans and model calls of this process. @default false
   */
  readonly studio?: boolean | string | undefined;
  /**
   * The folder in which Studio keeps recorded spans and model calls, so that they survive a restart. They contain what models
   * were sent. @default in memory
   */
  readonly studioData?: string | undefined;
}

/** A running server. */
export interface RunningServer {
  /** The address of the server. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /**
   * Ends the open streams and WebSockets of a principal; gives their number. Revoke its credentials first, so that its clients
   * cannot come back. Its runs continue, or stop with `onDisconnect: 'abort'`.
   */
  disconnect(principal: string): number;
  /**
   * Takes no more requests, lets running turns finish for a while, then ends what is still open so that its clients go
   * on elsewhere. The app stays open.
   */
  close(): Promise<void>;
}

const { basePath: _, waitUntil: __, ...shared } = handlerOptionNames;
const optionNames: OptionNames<ServeOptions> = {
  ...shared,
  port: true,
  host: true,
  grace: true,
  genkitProject: true,
  studio: true,
  studioData: true,
};

/** Serves an app over HTTP and WebSocket. */
export async function serve(app: ServedApp, options: ServeOptions = {}): Promise<RunningServer> {
  checkOptions(options, optionNames, 'serve()');
  const { port = 3000, host = '127.0.0.1', grace = 5000 } = options;
  if (!options.auth && !isLoopback(host)) {
    throw failedPrecondition(
      `Listening on ${host} lets other machines in. Authenticate requests with \`auth\`, or listen on 127.0.0.1.`,
      { details: { host } },
    );
  }
  const write = (line: string): void => void process.stdout.write(line);
  const log = options.log ?? (process.stdout.isTTY ? readableLines(write) : jsonLines(write));
  const shared = createServerContext(app, { ...options, log }, allProtocols(options));
  // Loaded here, so that `handler` alone needs neither Node nor its adapters.
  const { createNodeServer, openStudio, writeRuntimeFile } = await import('./node-server.ts');
  const { auth, studio, studioData: data } = options;
  const opened = studio ? await openStudio(studio, { ...shared, auth, data }) : undefined;
  const pendingConnections = createPendingConnections(shared.limits);
  const serverContext = { ...shared, pendingConnections };
  const server = createNodeServer(serverContext, opened?.studio);
  let bound: number;
  try {
    bound = await listen(server, port, host);
  } catch (error) {
    await opened?.close();
    serverContext.unsubscribe();
    throw withCaller(error);
  }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}`;
  const forget = options.genkitProject
    ? await writeRuntimeFile(options.genkitProject, bound, serverContext.clock)
    : async () => {};
  shared.log('info', 'listening', { url });

  const close = once(async () => {
    await forget();
    // Still listening, so that a load balancer reads from `/readyz` that the server is draining.
    await serverContext.lifetime.end(grace);
    const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    // Streams that have ended tell their clients before the connections are cut.
    await (options.clock ?? systemClock).sleep(50);
    server.closeAllConnections();
    await stopped;
    await opened?.close();
    serverContext.unsubscribe();
    shared.log('info', 'closed', { url });
  });
  return { url, port: bound, disconnect: serverContext.presence.disconnect, close };
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = listenProblem(`${host}:${port}`, 'code' in cause ? String(cause.code) : '');
      reject(new WaymarkError('UNAVAILABLE', message, { cause }));
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

function listenProblem(address: string, code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Could not listen on ${address}: the port is in use (EADDRINUSE). Stop the other process, or choose another port; 0 takes a free one.`;
    case 'EACCES':
      return `Could not listen on ${address}: this user may not use the port (EACCES). Choose one above 1023.`;
    default:
      return `Could not listen on ${address}${code === '' ? '' : ` (${code})`}. Choose another host or port.`;
  }
}
