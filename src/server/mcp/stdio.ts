import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import { errorMessage, RpcError } from '../http/json-rpc.ts';
import { modernHeaders } from './era.ts';
import { codes } from './messages.ts';
import { mcpPath } from './mount.ts';

/** The two ends of a local client. */
export interface StdioOptions {
  /** The client's messages, line by line. */
  readonly lines: AsyncIterable<string>;
  readonly write: (line: string) => void;
  /** Stops what is still running. */
  readonly signal?: AbortSignal;
}

/**
 * Serves a local MCP client over lines, each of which is one message. Every message is passed to the HTTP endpoint, so that
 * both transports do the same. Resolves when the client has closed its end and all of its requests are answered.
 */
export async function serveLines(
  fetch: (request: Request) => Promise<Response>,
  { lines, write, signal }: StdioOptions,
): Promise<void> {
  const bridge = new Bridge(fetch, write, signal);
  for await (const line of lines) {
    if (line.trim() !== '') bridge.receive(line);
  }
  await bridge.settled();
}

type Id = string | number;

class Bridge {
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #write: (line: string) => void;
  readonly #signal: AbortSignal | undefined;
  /** Requests of the modern era, which are cancelled by closing them. */
  readonly #open = new Map<Id, AbortController>();
  readonly #running = new Set<Promise<void>>();
  /** The headers of a client of 2025 for each request after `initialize`. */
  #legacyHeaders: Readonly<Record<string, string>> = {};
  /** Later messages wait for it: it gives the session its id. */
  #initialized: Promise<void> = Promise.resolve();

  constructor(
    fetch: (request: Request) => Promise<Response>,
    write: (line: string) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#fetch = fetch;
    this.#write = write;
    this.#signal = signal;
  }

  receive(line: string): void {
    const message = parsed(line);
    if (message === undefined) {
      const error = new RpcError(codes.parseError, 'The line is not valid JSON.');
      this.#send(errorMessage(null, error));
      return;
    }
    const { method, params } = isJsonObject(message) ? message : {};
    if (method === 'notifications/cancelled' && isJsonObject(params)) {
      const open = this.#open.get(params.requestId as Id);
      if (open) {
        open.abort();
        return;
      }
    }
    const work = this.#pass(message);
    if (method === 'initialize') this.#initialized = work;
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #pass(message: Json): Promise<void> {
    const { id, method } = isJsonObject(message) ? message : {};
    const modern = isJsonObject(message) ? modernHeaders(message) : undefined;
    const controller = new AbortController();
    const requestId = typeof id === 'string' || typeof id === 'number' ? id : undefined;
    if (modern && requestId !== undefined) this.#open.set(requestId, controller);
    const stop = (): void => controller.abort();
    this.#signal?.addEventListener('abort', stop, { once: true });
    try {
      if (!modern && method !== 'initialize') await this.#initialized;
      const response = await this.#fetch(
        new Request(`http://localhost${mcpPath}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...(modern ?? this.#legacyHeaders),
          },
          body: JSON.stringify(message),
          signal: controller.signal,
        }),
      );
      await this.#relay(response, controller.signal, requestId);
    } catch (error) {
      if (controller.signal.aborted) return;
      throw error;
    } finally {
      this.#signal?.removeEventListener('abort', stop);
      if (requestId !== undefined) this.#open.delete(requestId);
    }
  }

  async #relay(response: Response, signal: AbortSignal, id: Id | undefined): Promise<void> {
    const session = response.headers.get('mcp-session-id');
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      for await (const data of sseData(response)) if (!signal.aborted) this.#write(`${data}\n`);
      return;
    }
    const text = await response.text();
    const answer = parsed(text);
    if (!isJsonObject(answer) || signal.aborted) return;
    if (session !== null) this.#begin(session, answer);
    // A refusal before the message was read does not know its id.
    this.#send(answer.id === null && id !== undefined ? { ...answer, id } : answer);
  }

  #begin(session: string, { result }: JsonObject): void {
    const { protocolVersion } = isJsonObject(result) ? result : {};
    this.#legacyHeaders = {
      'mcp-session-id': session,
      'mcp-protocol-version': String(protocolVersion),
    };
  }

  #send(message: object): void {
    this.#write(`${JSON.stringify(message)}\n`);
  }
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** The data of server-sent events, as this server writes them: one line each. */
async function* sseData({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let buffer = '';
  for await (const piece of body ?? []) {
    buffer += decoder.decode(piece, { stream: true });
    const lines = buffer.split('\n');
    buffer = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6);
  }
}
