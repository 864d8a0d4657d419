import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ErrorBody } from '../../../src/core/error.ts';
import type { ClientFrame } from '../../../src/protocol/frames.ts';
import type { Chunk, Init, Input, Output } from '../../../src/protocol/turn.ts';

/** A run on the loopback server: what it has told so far, and who follows it. */
export class LoopbackRun {
  readonly events: { readonly id: string; readonly event: string; readonly data: unknown }[] = [];
  readonly stopped = new AbortController();
  final: { readonly event: 'output' | 'error'; readonly data: unknown } | undefined;
  readonly #listeners = new Set<() => void>();
  #attempt = 1;
  #seq = 0;

  constructor(readonlyId: string) {
    this.id = readonlyId;
  }
  readonly id: string;

  chunk(chunk: Chunk): void {
    this.#push('chunk', chunk);
  }

  reset(): void {
    this.#attempt++;
    this.#seq = 0;
    this.#push('reset', { attempt: this.#attempt });
  }

  end(output: Partial<Output> = {}): void {
    this.final = { event: 'output', data: { sessionId: 's1', snapshotId: this.id, ...output } };
    this.#tell();
  }

  fail(error: ErrorBody): void {
    this.final = { event: 'error', data: error };
    this.#tell();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #push(event: string, data: unknown): void {
    this.events.push({ id: `${this.#attempt}.${this.#seq++}`, event, data });
    this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** What the server does with a turn. */
export type Script = (
  run: LoopbackRun,
  input: Input,
  init: Init | undefined,
) => void | Promise<void>;

/** A request as it came in. */
interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export interface Loopback extends AsyncDisposable {
  readonly url: string;
  readonly seen: Seen[];
  readonly runs: Map<string, LoopbackRun>;
  readonly frames: ClientFrame[];
  /** Bytes after which the next event stream is cut; `undefined`: not at all. */
  cutAfter: () => number | undefined;
  /** Answers to plain requests, by `METHOD /path`. */
  readonly answers: Map<
    string,
    {
      readonly status?: number;
      readonly body: unknown;
      readonly headers?: Record<string, string>;
      /** How many requests get this answer. @default all */
      times?: number;
    }
  >;
  /** Ends every WebSocket without a word. */
  cutSockets(): void;
}

/**
 * A server that speaks the native dialect of the wire and nothing else: turns are scripts, and its lines can be cut at
 * any byte. It replaces the real server where a test must control every byte.
 */
export async function startLoopback(script: Script): Promise<Loopback> {
  const sockets = new Set<WebSocket>();
  let count = 0;
  const loopback: Omit<Loopback, 'url' | typeof Symbol.asyncDispose> = {
    seen: [],
    runs: new Map(),
    frames: [],
    cutAfter: () => undefined,
    answers: new Map(),
    cutSockets() {
      for (const socket of sockets) socket.terminate();
    },
  };
  const start = (input: Input, init: Init | undefined): LoopbackRun => {
    const run = new LoopbackRun(`run-${++count}`);
    loopback.runs.set(run.id, run);
    void script(run, input, init);
    return run;
  };

  const server = createServer(async (request, response) => {
    const text = await readAll(request);
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const { method = '', url = '', headers } = request;
    loopback.seen.push({ method, url, headers, body });
    const answer = loopback.answers.get(`${method} ${url}`);
    if (answer?.times !== undefined && --answer.times === 0) {
      loopback.answers.delete(`${method} ${url}`);
    }
    const [, snapshot, what] = /\/snapshots\/([^/]+)\/(\w+)$/.exec(url) ?? [];
    const run = snapshot === undefined ? undefined : loopback.runs.get(snapshot);
    if (answer) {
      response.writeHead(answer.status ?? 200, {
        'content-type': 'application/json',
        ...answer.headers,
      });
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    } else if (method === 'POST' && url.endsWith('/turns')) {
      const { input, init } = body as { input: Input; init?: Init };
      sendEvents(response, start(input, init), undefined, loopback.cutAfter());
    } else if (run && what === 'events') {
      sendEvents(response, run, headers['last-event-id']?.toString(), loopback.cutAfter());
    } else if (run && what === 'abort') {
      run.stopped.abort();
      response.end(JSON.stringify({ snapshotId: run.id, status: 'pending' }));
    } else {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ status: 'NOT_FOUND', message: `Nothing at ${url}.` }));
    }
  });
  const webSockets = new WebSocketServer({ server });
  webSockets.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    speakFrames(socket, loopback.frames, start);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...loopback,
    get cutAfter() {
      return loopback.cutAfter;
    },
    set cutAfter(cut) {
      loopback.cutAfter = cut;
    },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      loopback.cutSockets();
      webSockets.close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function sendEvents(
  response: ServerResponse,
  run: LoopbackRun,
  after: string | undefined,
  cutAfter = Number.POSITIVE_INFINITY,
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  let next = after === undefined ? 0 : run.events.findIndex(({ id }) => id === after) + 1;
  let left = cutAfter;
  const write = (text: string): void => {
    const bytes = Buffer.from(text);
    if (left <= 0) return;
    if (bytes.length < left) response.write(bytes);
    // The bytes before the cut are sent, then the line is gone, as if a cable had been pulled.
    else response.write(bytes.subarray(0, left), () => response.destroy());
    left -= bytes.length;
  };
  const flush = (): void => {
    write(': keep-alive\n\n');
    for (; next < run.events.length; next++) {
      const { id, event, data } = run.events[next] ?? { id: '', event: '', data: '' };
      write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    }
    if (!run.final) return;
    write(`event: ${run.final.event}\ndata: ${JSON.stringify(run.final.data)}\n\n`);
    if (left > 0) response.end();
  };
  const forget = run.onChange(flush);
  response.on('close', forget);
  flush();
}

function speakFrames(
  socket: WebSocket,
  frames: ClientFrame[],
  start: (input: Input, init: Init | undefined) => LoopbackRun,
): void {
  let init: Init | undefined;
  let seq = 0;
  let current: LoopbackRun | undefined;
  const send = (frame: object): void => socket.send(JSON.stringify({ seq: seq++, ...frame }));
  const finish = (): void => {
    const data = current?.final?.data ?? { sessionId: 's1' };
    send(
      current?.final?.event === 'error'
        ? { type: 'error', error: data }
        : { type: 'output', output: data },
    );
    socket.close();
  };
  socket.on('message', (data) => {
    const frame: ClientFrame = JSON.parse(String(data));
    frames.push(frame);
    if (frame.type === 'init') {
      init = frame.init;
      send({ type: 'accepted', ref: frame.ref });
    }
    if (frame.type === 'input') {
      if (frame.input.message?.role === 'model') {
        send({
          type: 'error',
          ref: frame.ref,
          error: { status: 'INVALID_ARGUMENT', message: 'Not a user message.' },
        });
        return;
      }
      send({ type: 'accepted', ref: frame.ref });
      const run = start(frame.input, init);
      current = run;
      let next = 0;
      const flush = (): void => {
        for (; next < run.events.length; next++) {
          const { id, event, data } = run.events[next] ?? { id: '', event: '', data: '' };
          send(
            event === 'chunk'
              ? { type: 'chunk', id, chunk: data }
              : { type: 'reset', id, ...(data as object) },
          );
        }
      };
      run.onChange(flush);
      flush();
    }
    if (frame.type === 'detach') {
      send({ type: 'accepted', ref: frame.ref });
      current?.end({ finishReason: 'detached' });
      finish();
    }
    if (frame.type === 'abort') {
      current?.stopped.abort();
      setTimeout(finish, 10);
    }
    if (frame.type === 'close') {
      if (!current || current.final) finish();
      else current.onChange(() => current?.final && finish());
    }
  });
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text;
}
