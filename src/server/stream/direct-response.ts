import type { ServerResponse } from 'node:http';
import { afterThisTurn } from '../../core/platform.ts';
import type { FrameSink, FrameSource } from '../http/frame-sink.ts';

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
