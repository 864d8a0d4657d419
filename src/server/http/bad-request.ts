import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WaymarkError } from '../../core/error.ts';
import { errorHeaders, httpStatusOf, toWireError } from './error-response.ts';
import { safetyHeaders } from './safety-headers.ts';

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
      return new WaymarkError('INVALID_ARGUMENT', 'The headers are over their limit.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new WaymarkError('DEADLINE_EXCEEDED', 'The request took too long to arrive.');
    default:
      return new WaymarkError('INVALID_ARGUMENT', 'This is not a valid HTTP request.');
  }
}
