import { allEvents } from './kit.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

/** What came back for one JSON-RPC message. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The messages before the response. */
  readonly before: readonly Any[];
  readonly body: Any;
}

/** Where messages go, as whom, and what the client can do. */
export interface Target {
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly capabilities?: object;
  readonly signal?: AbortSignal;
}

const namedBy: Record<string, string> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

let count = 0;

/** A request of revision 2026-07-28; written by hand, so that the tests do not trust a client. */
export async function modern(
  { url, headers, capabilities = {}, signal }: Target,
  method: string,
  params: Record<string, unknown> = {},
  change: { readonly headers?: Record<string, string>; readonly meta?: object } = {},
): Promise<Answer> {
  const name = params[namedBy[method] ?? ''];
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
      ...change.headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: ++count,
      method,
      params: {
        ...params,
        _meta: {
          ...(params._meta as object | undefined),
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': capabilities,
          ...change.meta,
        },
      },
    }),
    ...(signal && { signal }),
  });
  return await read(response);
}

/** A message of a 2025 revision. */
export async function legacy(
  { url, headers = {} }: Target,
  message: Record<string, unknown>,
): Promise<Answer> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  return await read(response);
}

async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  if (headers.get('content-type')?.startsWith('text/event-stream')) {
    const messages = (await allEvents(response)).map(({ data }) => data);
    return { status, headers, before: messages.slice(0, -1), body: messages.at(-1) };
  }
  const text = await response.text();
  return { status, headers, before: [], body: text === '' ? undefined : JSON.parse(text) };
}

/** Says something to an agent. */
export function say(
  target: Target,
  message: string,
  { name = 'chat', ...rest }: Record<string, unknown> = {},
): Promise<Answer> {
  const { requestState, inputResponses, ...args } = rest;
  return modern(target, 'tools/call', {
    name,
    arguments: { message, ...args },
    ...(requestState !== undefined && { requestState }),
    ...(inputResponses !== undefined && { inputResponses }),
  });
}
