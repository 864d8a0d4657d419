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
  #isFull = false;
  #hasWritten = false;

  constructor(outgoing: ServerResponse, source: FrameSource) {
    this.#outgoing = outgoing;
    outgoing.on('drain', () => {
      this.#isFull = false;
      source.pulled();
    });
    if (outgoing.destroyed) afterThisTurn(() => source.left());
    else outgoing.once('close', () => source.left());
    // Send the headers at once, so that a client of a silent stream knows it is connected.
    afterThisTurn(() => afterThisTurn(() => this.#flushHeaders()));
  }

  isFull(): boolean {
    return this.#isFull;
  }

  write(text: string): void {
    this.#hasWritten = true;
    this.#isFull = !this.#outgoing.write(text);
  }

  close(): void {
    this.#outgoing.end();
  }

  fail(): void {
    this.#outgoing.destroy();
  }

  #flushHeaders(): void {
    if (!this.#hasWritten && this.#outgoing.writable) this.#outgoing.flushHeaders();
  }
}
