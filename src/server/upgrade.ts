import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { invalid, WaymarkError } from '../core/error.ts';
import { routes } from '../protocol/routes.ts';
import { errorHeaders, httpStatusOf, safetyHeaders, toWireError } from './http/answer.ts';
import { addressOf } from './http/connection.ts';
import { checkRequest } from './http/origin.ts';
import { findAgent, type ServerContext } from './http/server-context.ts';
import { serveConnection } from './native/connect.ts';

/** Takes the upgrade requests of a Node server and serves the WebSockets they become. */
export function createUpgrade(
  serverContext: ServerContext,
): (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { options, limits, lifetime, log } = serverContext;
  const sockets = new WebSocketServer({ noServer: true, maxPayload: limits.bodyBytes });
  // Bytes that clients have sent before they were authenticated, and that are held in memory. Room for one frame of the
  // largest size: reading several of them in one turn of the event loop would hold up everybody else.
  const early = createByteBudget(limits.bodyBytes + 2 ** 20);

  const check = (incoming: IncomingMessage): { request: Request; agent: string } => {
    const request = toRequest(incoming);
    checkRequest({ req: { raw: request }, env: undefined }, serverContext, true);
    lifetime.checkOpen();
    const agent = agentOf(request);
    // Without auth all agents are public; with it the first frame must authenticate.
    if (!options.auth) findAgent(serverContext.app.agents(), agent);
    return { request, agent };
  };

  return (incoming, socket, head) => {
    socket.on('error', () => {});
    try {
      const { request, agent } = check(incoming);
      // Check capacity only; the slot is acquired after authentication.
      serverContext.streams.take(undefined)();
      const address = addressOf(options, request, { incoming });
      const release = early.watch(socket);
      sockets.handleUpgrade(incoming, socket, head, (webSocket) => {
        serveConnection(serverContext, webSocket, {
          agent,
          request,
          identify: async (asking) => {
            const caller = await serverContext.identify(asking, address);
            // A socket that closed while `auth` was busy would never give its slot back.
            if (webSocket.readyState !== webSocket.OPEN) {
              throw new WaymarkError('CANCELLED', 'The socket was closed.');
            }
            const mine = serverContext.streams.take(caller.principal);
            release();
            serverContext.pendingConnections?.know(socket);
            webSocket.once('close', mine);
            return caller;
          },
        });
        log('info', 'connected', { agent });
      });
    } catch (error) {
      answerRaw(socket, error);
    }
  };
}

function toRequest({ url = '/', headers }: IncomingMessage): Request {
  const target = `http://${headers.host ?? 'invalid'}${url}`;
  if (!url.startsWith('/') || !URL.canParse(target)) {
    throw invalid('The request line or its Host header is not valid.');
  }
  const plain = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) plain.set(name, typeof value === 'string' ? value : value.join(', '));
  }
  return new Request(target, { headers: plain });
}

const connectPath = new RegExp(`^${routes.connect.path.replace(':agent', '([^/]+)')}$`);

function agentOf(request: Request): string {
  const [, name] = connectPath.exec(new URL(request.url).pathname) ?? [];
  if (name === undefined) {
    throw new WaymarkError('NOT_FOUND', 'There is no WebSocket here, only at …/connect.');
  }
  try {
    return decodeURIComponent(name);
  } catch {
    throw invalid('The name of the agent is not valid in a URL.');
  }
}

// Cuts the connection whose bytes would exceed the budget of all connections that it watches.
function createByteBudget(most: number): { watch(socket: Duplex): () => void } {
  let held = 0;
  return {
    watch(socket) {
      let mine = 0;
      const count = (piece: Buffer): void => {
        mine += piece.byteLength;
        held += piece.byteLength;
        if (held > most) socket.destroy();
      };
      const release = (): void => {
        socket.off('data', count);
        held -= mine;
        mine = 0;
      };
      socket.on('data', count);
      socket.once('close', release);
      return release;
    },
  };
}

/** Milliseconds that a client has to read the answer and close its side. */
const lingerMs = 1000;

/** Answers what never became a request, with the same body as every other error. */
export function answerBadRequest(error: Error & { readonly code?: string }, socket: Duplex): void {
  // A connection that was opened in advance and never used is closed silently: a client that sends its first request on it in
  // this very moment would take the word for the answer.
  const isUnused = 'bytesRead' in socket && socket.bytesRead === 0;
  if (error.code === 'ECONNRESET' || !socket.writable || isUnused) {
    socket.destroy();
    return;
  }
  answerRaw(socket, reasonOf(error.code));
}

/** Writes an error onto a socket that no response belongs to, and closes it. */
function answerRaw(socket: Duplex, error: unknown): void {
  const body = toWireError(error);
  const status = httpStatusOf(body);
  const text = JSON.stringify(body);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
    ...safetyHeaders,
    ...errorHeaders(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const statusLine = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n`;
  socket.end(`${statusLine}${lines.join('')}\r\n${text}`);
  // Node no longer looks after this socket: a client that keeps its side open would keep the socket open forever.
  const cut = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(cut));
  socket.resume();
}

function reasonOf(code: string | undefined): WaymarkError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return invalid('The headers are over their limit.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new WaymarkError('DEADLINE_EXCEEDED', 'The request took too long to arrive.');
    default:
      return invalid('This is not a valid HTTP request.');
  }
}
