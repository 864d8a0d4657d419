import { isJsonObject, type Json } from '../../core/json/json.ts';
import { jsonIn } from '../http/body.ts';
import { errorMessage, RpcError } from '../http/json-rpc.ts';
import { modernHeaders } from './era.ts';
import { codes } from './messages.ts';
import { mcpPath } from './mount.ts';

export interface StdioOptions {
  /** The client's messages, line by line. */
  readonly lines: AsyncIterable<string>;
  readonly write: (line: string) => void;
  /** Stops what is still running. */
  readonly signal?: AbortSignal;
}

type Id = string | number;

/**
 * Serves a local MCP client over lines, each of which is one message. Every message is passed to the HTTP endpoint, so that
 * both transports do the same. Resolves when the client has closed its end and all of its requests are answered.
 */
export async function serveLines(
  fetch: (request: Request) => Promise<Response>,
  { lines, write, signal }: StdioOptions,
): Promise<void> {
  /** Requests of the modern era, which are cancelled by closing them. */
  const open = new Map<Id, AbortController>();
  const running = new Set<Promise<void>>();
  /** The headers of a client of 2025 for each request after `initialize`. */
  let legacyHeaders: Readonly<Record<string, string>> = {};
  /** Later messages wait for it: it gives the session its id. */
  let initialized: Promise<void> = Promise.resolve();
  const send = (message: object): void => write(`${JSON.stringify(message)}\n`);

  const pass = async (message: Json): Promise<void> => {
    const { id, method } = isJsonObject(message) ? message : {};
    const modern = isJsonObject(message) ? modernHeaders(message) : undefined;
    const controller = new AbortController();
    const requestId = typeof id === 'string' || typeof id === 'number' ? id : undefined;
    if (modern && requestId !== undefined) open.set(requestId, controller);
    const stop = (): void => controller.abort();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      if (!modern && method !== 'initialize') await initialized;
      const response = await fetch(
        new Request(`http://localhost${mcpPath}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...(modern ?? legacyHeaders),
          },
          body: JSON.stringify(message),
          signal: controller.signal,
        }),
      );
      await relay(response, controller.signal, requestId);
    } catch (error) {
      if (controller.signal.aborted) return;
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      if (requestId !== undefined) open.delete(requestId);
    }
  };

  const relay = async (
    response: Response,
    left: AbortSignal,
    id: Id | undefined,
  ): Promise<void> => {
    const session = response.headers.get('mcp-session-id');
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      for await (const data of sseData(response)) if (!left.aborted) write(`${data}\n`);
      return;
    }
    const answer = jsonIn(await response.text());
    if (!isJsonObject(answer) || left.aborted) return;
    if (session !== null) {
      const { protocolVersion } = isJsonObject(answer.result) ? answer.result : {};
      const version = String(protocolVersion);
      legacyHeaders = { 'mcp-session-id': session, 'mcp-protocol-version': version };
    }
    // A refusal before the message was read does not know its id.
    send(answer.id === null && id !== undefined ? { ...answer, id } : answer);
  };

  const receive = (line: string): void => {
    const message = jsonIn(line);
    if (message === undefined) {
      send(errorMessage(null, new RpcError(codes.parseError, 'The line is not valid JSON.')));
      return;
    }
    const { method, params } = isJsonObject(message) ? message : {};
    if (method === 'notifications/cancelled' && isJsonObject(params)) {
      const cancelled = open.get(params.requestId as Id);
      cancelled?.abort();
      if (cancelled) return;
    }
    const work = pass(message);
    if (method === 'initialize') initialized = work;
    running.add(work);
    void work.finally(() => running.delete(work));
  };

  for await (const line of lines) if (line.trim() !== '') receive(line);
  while (running.size > 0) await Promise.all(running);
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
