import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WaymarkError } from '../core/error.ts';
import { afterThisTurn } from '../core/platform.ts';
import type { FrameSink, FrameSource } from './http/connection.ts';
import { errorHeaders, httpStatusOf, invalid, toWireError } from './http/errors.ts';
import { safetyHeaders } from './http/json-response.ts';
import type { Pieces } from './native/artifacts.ts';

/** Smaller pieces may share their memory with others. */
const leastFreed = 16_384;

/**
 * Writes a response of pieces to the connection, and frees the memory of each one when it has been written. Left to garbage collection, tens of megabytes
 * of them would pile up, because they are not in the heap that it watches. Throws what reading throws, with the connection cut.
 */
export async function sendPieces(
  outgoing: ServerResponse,
  { status, headers }: Response,
  pieces: Pieces,
): Promise<void> {
  outgoing.writeHead(status, Object.fromEntries(headers));
  try {
    for await (const piece of pieces) {
      if (!(await write(outgoing, piece))) return;
      if (piece.length >= leastFreed) piece.buffer.transfer(0);
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
export function answerRaw(socket: Duplex, error: unknown): void {
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

/**
 * Begins a response of frames straight on a Node response: headers, frames and end leave in one piece where they come
 * together.
 */
export function writeDirectly(
  outgoing: ServerResponse,
  headers: Readonly<Record<string, string>>,
  source: FrameSource,
): FrameSink {
  outgoing.writeHead(200, headers);
  return new ResponseSink(outgoing, source);
}

class ResponseSink implements FrameSink {
  readonly #outgoing: ServerResponse;
  readonly #isChunked: boolean;
  #isFull = false;
  #hasWritten = false;

  constructor(outgoing: ServerResponse, source: FrameSource) {
    this.#outgoing = outgoing;
    this.#isChunked = outgoing.chunkedEncoding;
    // Framed here, text with its length as one string: Node would hand four pieces to the socket for each write.
    outgoing.chunkedEncoding = false;
    outgoing.on('drain', () => {
      this.#isFull = false;
      source.pulled();
    });
    if (outgoing.destroyed) afterThisTurn(() => source.left());
    // Send the headers at once, so that a client of a silent stream knows it is connected.
    afterThisTurn(() => afterThisTurn(() => this.#flushHeaders()));
  }

  isFull(): boolean {
    return this.#isFull;
  }

  write(text: string): void {
    this.#hasWritten = true;
    this.#isFull = !this.#outgoing.write(this.#isChunked ? httpChunk(text) : text);
  }

  close(): void {
    if (this.#isChunked && this.#outgoing.writable) this.#outgoing.end(lastHttpChunk);
    else this.#outgoing.end();
  }

  fail(): void {
    this.#outgoing.destroy();
  }

  #flushHeaders(): void {
    if (!this.#hasWritten && this.#outgoing.writable) this.#outgoing.flushHeaders();
  }
}

/** A text as a chunk of an HTTP/1.1 body. */
function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

const lastHttpChunk = '0\r\n\r\n';
