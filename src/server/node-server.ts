import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT as alreadySent } from '@hono/node-server/utils/response';
import { invalid } from '../core/error.ts';
import { afterThisTurn } from '../core/platform.ts';
import { createFetch } from './create-fetch.ts';
import { errorResponse } from './http/answer.ts';
import { joinPieces } from './http/body.ts';
import {
  cutWhenIdle,
  type FrameSink,
  type FrameSource,
  type NodeBindings,
} from './http/connection.ts';
import { logFault } from './http/log.ts';
import type { ServerContext } from './http/server-context.ts';
import { type Pieces, piecesOf } from './native/artifacts.ts';
import type { MountStudio } from './studio/mount.ts';
import { answerBadRequest, createUpgrade } from './upgrade.ts';

export { writeRuntimeFile } from './reflection/runtime-file.ts';
export { openStudio } from './studio/open.ts';

// Asked for its body, it is a plain response even if the global one was replaced by the adapter's.
void alreadySent.body;

/** A Node server, with limits on how slowly and how much a client may send. */
export function createNodeServer(serverContext: ServerContext, studio?: MountStudio): Server {
  const { limits } = serverContext;
  const fetch = createFetch(serverContext, studio);
  const answer = async (request: Request, env: NodeBindings): Promise<Response> => {
    const { incoming, outgoing } = env;
    const response = await fetch(request, { incoming, outgoing, own: ownLine(incoming, outgoing) });
    if (response === alreadySent) throw alreadySent;
    // The whole answer is at hand: a client that does not read it is cut. Streams look after themselves, and short answers
    // fit into the buffers of the operating system.
    if (isLong(response)) cutWhenIdle(env, limits.stallTimeout);
    const pieces = piecesOf(response);
    if (pieces === undefined || !(outgoing instanceof ServerResponse)) return response;
    await sendPieces(outgoing, response, pieces).catch((error: unknown) =>
      logFault(serverContext, error),
    );
    throw alreadySent;
  };
  const listener = getRequestListener(answer, {
    // Two servers in one process must not change each other's globals.
    overrideGlobalObjects: false,
    // A response that is thrown as sent is done. Returned, the adapter would still read its headers and its body.
    errorHandler: (error) =>
      error === alreadySent ? undefined : errorResponse(toBadRequest(error)),
  });
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      // Refused below, with the error body.
      requireHostHeader: false,
      requestTimeout: limits.requestTimeout,
      headersTimeout: limits.requestTimeout,
      // How often the two timeouts above are checked.
      connectionsCheckingInterval: Math.min(limits.requestTimeout / 2, 1000),
      // Longer than the minute for which proxies keep an idle line, so that it is they who close it.
      keepAliveTimeout: 65_000,
    },
    (incoming, outgoing) => {
      const asked = serverContext.pendingConnections?.asks(incoming.socket);
      if (asked) outgoing.once('close', asked);
      joinPieces(incoming);
      return listener(incoming, outgoing);
    },
  );
  server.on('connection', (socket) => serverContext.pendingConnections?.add(socket));
  server.on('clientError', answerBadRequest);
  server.on('upgrade', createUpgrade(serverContext));
  return server;
}

function isLong({ headers }: Response): boolean {
  return Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY) > 16 * 1024;
}

function ownLine(
  incoming: NodeBindings['incoming'],
  outgoing: NodeBindings['outgoing'],
): NodeBindings['own'] {
  if (!(incoming instanceof IncomingMessage && outgoing instanceof ServerResponse))
    return undefined;
  return {
    headers: incoming.headers,
    onClose: (listener) => {
      if (outgoing.destroyed) listener();
      else outgoing.once('close', listener);
    },
    writeFrames: (headers, source) => writeDirectly(outgoing, headers, source),
    answered: alreadySent,
  };
}

function toBadRequest(error: unknown): unknown {
  return error instanceof Error && error.name === 'RequestError'
    ? invalid('The request line or its Host header is not valid.')
    : error;
}

/** Smaller pieces may share their memory with others. */
const minFreed = 16_384;

/**
 * Writes a response of pieces to the connection, and frees the memory of each one when it has been written. Left to garbage collection, tens of megabytes
 * of them would pile up, because they are not in the heap that it watches. Throws what reading throws, with the connection cut.
 */
async function sendPieces(
  outgoing: ServerResponse,
  { status, headers }: Response,
  pieces: Pieces,
): Promise<void> {
  outgoing.writeHead(status, Object.fromEntries(headers));
  try {
    for await (const piece of pieces) {
      if (!(await write(outgoing, piece))) return;
      if (piece.length >= minFreed) piece.buffer.transfer(0);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
}

/** Writes a piece. Gives whether it has left this process; it has not if the client has gone. */
function write(outgoing: ServerResponse, piece: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    if (outgoing.destroyed) return resolve(false);
    const gone = (): void => resolve(false);
    outgoing.once('close', gone);
    outgoing.write(piece, (error) => {
      outgoing.off('close', gone);
      resolve(!error);
    });
    return undefined;
  });
}

/**
 * Begins a response of frames straight on a Node response: headers, frames and end leave in one piece where they come
 * together.
 */
function writeDirectly(
  outgoing: ServerResponse,
  headers: Readonly<Record<string, string>>,
  source: FrameSource,
): FrameSink {
  outgoing.writeHead(200, headers);
  const isChunked = outgoing.chunkedEncoding;
  let isFull = false;
  let hasWritten = false;
  // Framed here, text with its length as one string: Node would hand four pieces to the socket for each write.
  outgoing.chunkedEncoding = false;
  outgoing.on('drain', () => {
    isFull = false;
    source.pulled();
  });
  if (outgoing.destroyed) afterThisTurn(() => source.left());
  const flushHeaders = (): void => {
    if (!hasWritten && outgoing.writable) outgoing.flushHeaders();
  };
  // Send the headers at once, so that a client of a silent stream knows it is connected.
  afterThisTurn(() => afterThisTurn(flushHeaders));
  return {
    isFull: () => isFull,
    write(text) {
      hasWritten = true;
      isFull = !outgoing.write(isChunked ? httpChunk(text) : text);
    },
    close() {
      if (isChunked && outgoing.writable) outgoing.end(lastHttpChunk);
      else outgoing.end();
    },
    fail: () => void outgoing.destroy(),
  };
}

/** A text as a chunk of an HTTP/1.1 body. */
function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

const lastHttpChunk = '0\r\n\r\n';
