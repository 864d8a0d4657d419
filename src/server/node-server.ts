import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT as alreadySent } from '@hono/node-server/utils/response';
import { settled } from '../core/async/promises.ts';
import { createFetch } from './create-fetch.ts';
import { joinPieces } from './http/body.ts';
import { cutWhenIdle, type NodeBindings } from './http/connection.ts';
import { errorResponse, invalid } from './http/errors.ts';
import { logFault } from './http/log.ts';
import type { ServerContext } from './http/server-context.ts';
import { piecesOf } from './native/artifacts.ts';
import { answerBadRequest, sendPieces, writeDirectly } from './node-response.ts';
import type { MountStudio } from './studio/mount.ts';
import { createUpgrade } from './upgrade.ts';

export { writeRuntimeFile } from './reflection/runtime-file.ts';
export { openStudio } from './studio/open.ts';

// Asked for its body, it is a plain response even if the global one was replaced by the adapter's.
void alreadySent.body;

/** A Node server over what the dialects share, with limits on how slowly and how much a client may send. */
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
    hasBody: (length) => takeBody(incoming, length),
    writeFrames: (headers, source) => writeDirectly(outgoing, headers, source),
    answered: alreadySent,
  };
}

/**
 * Reads a body that has arrived as a whole, as most do in one packet with their headers, and leaves it where the adapter looks
 * before it listens for more. A body that the `auth` hook has begun to read stays as it is.
 */
async function takeBody(
  incoming: IncomingMessage & { rawBody?: Buffer },
  length: number,
): Promise<boolean> {
  // Node parses the rest of the packet before promises continue.
  await settled;
  const { readableFlowing, readableDidRead, readableLength } = incoming;
  if (readableFlowing !== null || readableDidRead || readableLength !== length) return false;
  const body: Buffer | null = incoming.read();
  if (body === null) return false;
  incoming.rawBody = body;
  // Up to its end, which is still to come.
  incoming.resume();
  return true;
}

function toBadRequest(error: unknown): unknown {
  return error instanceof Error && error.name === 'RequestError'
    ? invalid('The request line or its Host header is not valid.')
    : error;
}
