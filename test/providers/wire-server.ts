import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One answer of the server. */
export interface WireAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** What happens after the body: it ends, the connection breaks, or nothing more comes. */
  readonly ending?: 'end' | 'break' | 'hang';
}

/** A loopback server that answers request after request, and remembers what it was asked. */
export interface WireServer extends AsyncDisposable {
  readonly url: string;
  /** The bodies of the requests. */
  // biome-ignore lint/suspicious/noExplicitAny: each provider's request has its own shape, which the tests look into.
  readonly requests: any[];
  /** Resolves when the client has hung up on an answer that did not end. */
  readonly hungUp: Promise<void>;
}

/** Starts a server. Bodies are sent a few bytes at a time, so that characters are split between network chunks. */
export async function startWireServer(answers: readonly WireAnswer[]): Promise<WireServer> {
  const requests: unknown[] = [];
  const hungUp = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void (async () => {
      const index = requests.push(JSON.parse(await readBody(request))) - 1;
      response.on('close', () => {
        if (!response.writableEnded) hungUp.resolve();
      });
      const answer = answers[index];
      if (answer) await send(response, answer);
      else response.writeHead(500).end(`no answer for request ${index}`);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    hungUp: hungUp.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The text of server-sent events, each with its type as the event's name if it has one. */
export function sse(events: readonly unknown[]): string {
  return events
    .map((event) => {
      const type = (event as { type?: string }).type;
      const name = type === undefined ? '' : `event: ${type}\n`;
      return `${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`;
    })
    .join('');
}

const sliceBytes = 3;

async function send(response: ServerResponse, answer: WireAnswer): Promise<void> {
  const { status = 200, headers, body, ending = 'end' } = answer;
  response.writeHead(status, {
    'content-type': status === 200 ? 'text/event-stream' : 'application/json',
    ...headers,
  });
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    response.write(bytes.subarray(at, at + sliceBytes));
    if (at % 99 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (ending === 'end') response.end();
  // Everything written must have left before the connection goes.
  if (ending === 'break') setTimeout(() => response.destroy(), 20);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
