import type { ServerResponse } from 'node:http';
import { afterThisTurn } from './event-loop.ts';
import { divertFrames, type FrameSink, type FrameSource } from './frame-stream.ts';

/**
 * Writes a response of frames straight to a Node response: headers, frames and end leave in one piece where they come
 * together. `false` for any other response, which is left as it is.
 */
export function writeDirectly(response: Response, outgoing: ServerResponse): boolean {
  return divertFrames(response.body, (source) => {
    outgoing.writeHead(response.status, headersOf(response));
    return responseSink(outgoing, source);
  });
}

function responseSink(outgoing: ServerResponse, source: FrameSource): FrameSink {
  let isFull = false;
  let hasWritten = false;
  outgoing.on('drain', () => {
    isFull = false;
    source.pulled();
  });
  if (outgoing.destroyed) source.left();
  else outgoing.once('close', () => source.left());
  // Whoever watches something that is silent learns at once that it is heard.
  const flushHeaders = (): void => {
    if (!hasWritten && outgoing.writable) outgoing.flushHeaders();
  };
  afterThisTurn(() => afterThisTurn(flushHeaders));
  return {
    get isFull() {
      return isFull;
    },
    write(text) {
      hasWritten = true;
      isFull = !outgoing.write(text);
    },
    close: () => void outgoing.end(),
    fail: () => void outgoing.destroy(),
  };
}

// How the body is cut into pieces is for Node to say, which knows what the client understands.
function headersOf({ headers }: Response): Record<string, string | string[]> {
  const plain: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    if (name === 'set-cookie') plain[name] = headers.getSetCookie();
    else if (name !== 'transfer-encoding') plain[name] = value;
  }
  return plain;
}
