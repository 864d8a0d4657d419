import * as v from 'valibot';
import { createSseParser } from '../client/sse-parser.ts';
import { abortError } from '../core/async/signal.ts';
import { boundResponse } from '../core/bound-response.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import type { ResolvedOptions } from './options.ts';
import {
  type AgentCard,
  agentCard,
  type RemoteMessage,
  type RemoteTask,
  remoteTask,
  rpcResponse,
  sent,
  streamEvent,
} from './shapes.ts';
import type { TaskStream } from './task-stream.ts';

const codes: Readonly<Record<number, 'NOT_FOUND' | 'INVALID_ARGUMENT' | 'UNIMPLEMENTED'>> = {
  [-32_001]: 'NOT_FOUND',
  [-32_602]: 'INVALID_ARGUMENT',
  [-32_601]: 'UNIMPLEMENTED',
};

const longest = 400;

/** The refusal of a remote agent. */
function fromRpcError(
  name: string,
  { code, message }: { readonly code: number; readonly message: string },
): WaymarkError {
  return new WaymarkError(
    codes[code] ?? 'FAILED_PRECONDITION',
    `The remote agent "${name}" refused: ${message.slice(0, longest)}`,
  );
}

/** A remote agent that cannot be reached, or that answers with something else. */
function unreachable(name: string, why: string, cause?: unknown): WaymarkError {
  return new WaymarkError('UNAVAILABLE', `The remote agent "${name}" ${why}`, {
    ...(cause !== undefined && { cause }),
    publicMessage: `The remote agent "${name}" is not available.`,
  });
}

/** Whether another attempt may succeed. */
export function isPassing(error: unknown): boolean {
  return isWaymarkError(error) && error.status === 'UNAVAILABLE';
}

/** Where a remote agent answers, and how. */
export interface Endpoint {
  readonly url: string;
  readonly version: '1.0' | '0.3';
  readonly streaming: boolean;
}

/** A message to a remote agent. */
export interface OutgoingMessage {
  /** Identifies the message: a remote agent that knows it does not act twice. */
  readonly messageId: string;
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
  readonly text?: string | undefined;
  readonly data?: unknown;
}

/** The calls of A2A that a tool needs. */
export interface A2aClient {
  /** Reads the card. */
  connect(signal: AbortSignal): Promise<Endpoint>;
  send(
    endpoint: Endpoint,
    message: OutgoingMessage,
    signal: AbortSignal,
  ): Promise<RemoteTask | RemoteMessage>;
  get(endpoint: Endpoint, taskId: string, signal: AbortSignal): Promise<RemoteTask>;
  /** Follows a task until its stream ends. */
  follow(
    endpoint: Endpoint,
    taskId: string,
    signal: AbortSignal,
    stream: TaskStream,
  ): Promise<void>;
  cancel(endpoint: Endpoint, taskId: string, signal: AbortSignal): Promise<void>;
}

const maxCardBytes = 1_048_576;
const cardPath = '.well-known/agent-card.json';

export function createA2aClient(options: ResolvedOptions): A2aClient {
  const { name, requestTimeout, maxMessageBytes } = options;

  const request = async (
    url: string | URL,
    init: RequestInit,
    signal: AbortSignal,
    maxBytes = maxMessageBytes,
  ): Promise<Response> => {
    const { headers } = options;
    const own = typeof headers === 'function' ? await headers() : headers;
    try {
      const response = await options.fetch(url, {
        ...init,
        headers: { ...own, ...(init.headers as Record<string, string>) },
        // A redirect would take the headers along.
        redirect: 'error',
        signal,
      });
      return boundResponse(response, maxBytes, () =>
        unreachable(name, `sent more than ${maxBytes} bytes at once.`),
      );
    } catch (error) {
      if (signal.aborted && signal.reason?.name !== 'TimeoutError') throw abortError(signal);
      throw unreachable(name, `did not answer at ${new URL(url).origin}.`, error);
    }
  };

  const post = (
    { url, version }: Endpoint,
    method: string,
    params: unknown,
    { accept, signal }: { readonly accept: string; readonly signal: AbortSignal },
  ): Promise<Response> =>
    request(
      url,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept, 'a2a-version': version },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      },
      signal,
    );

  const call = async (
    endpoint: Endpoint,
    [modern, legacy]: readonly [string, string],
    params: unknown,
    signal: AbortSignal,
  ): Promise<unknown> => {
    const method = endpoint.version === '1.0' ? modern : legacy;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]);
    const response = await post(endpoint, method, params, {
      accept: 'application/json',
      signal: limited,
    });
    const body = await json(response, signal);
    const { result, error } = check(rpcResponse, body);
    if (error) throw fromRpcError(name, error);
    if (!response.ok) throw unreachable(name, `answered with HTTP ${response.status}.`);
    return result;
  };

  const json = async (response: Response, signal: AbortSignal): Promise<unknown> => {
    try {
      return await response.json();
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      throw unreachable(name, `answered with HTTP ${response.status} and no JSON.`, error);
    }
  };

  const check = <Schema extends v.GenericSchema>(
    schema: Schema,
    value: unknown,
  ): v.InferOutput<Schema> => {
    const parsed = v.safeParse(schema, value, { abortEarly: true });
    if (parsed.success) return parsed.output;
    throw unreachable(name, 'answered with something that is not A2A.');
  };

  return {
    async connect(signal) {
      const base = options.url.href;
      const url = base.endsWith('.json') ? base : new URL(cardPath, base.replace(/\/*$/, '/'));
      const limited = AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]);
      const response = await request(
        url,
        { headers: { accept: 'application/json', 'a2a-version': '1.0' } },
        limited,
        Math.min(maxMessageBytes, maxCardBytes),
      );
      if (!response.ok) throw unreachable(name, `has no card at ${url}: HTTP ${response.status}.`);
      const card = check(agentCard, await json(response, signal));
      return endpointOf(card, options);
    },
    async send(endpoint, message, signal) {
      const params = endpoint.version === '1.0' ? sendParams(message) : legacySendParams(message);
      return check(sent, await call(endpoint, ['SendMessage', 'message/send'], params, signal));
    },
    async get(endpoint, id, signal) {
      return check(remoteTask, await call(endpoint, ['GetTask', 'tasks/get'], { id }, signal));
    },
    async follow(endpoint, id, signal, stream) {
      const method = endpoint.version === '1.0' ? 'SubscribeToTask' : 'tasks/resubscribe';
      const response = await post(
        endpoint,
        method,
        { id },
        { accept: 'text/event-stream', signal },
      );
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      if (!response.ok || !isStream) {
        await response.body?.cancel();
        throw unreachable(name, 'does not stream its tasks.');
      }
      const parser = createSseParser();
      for await (const bytes of response.body ?? []) {
        await stream.onBytes(bytes.length, signal);
        for (const { data } of parser.push(bytes)) stream.onEvent(textIn(data));
      }
    },
    async cancel(endpoint, id, signal) {
      await call(endpoint, ['CancelTask', 'tasks/cancel'], { id }, signal);
    },
  };
}

/** The interface to use: JSON-RPC, 1.0 before 0.3, on the host that the card comes from. */
function endpointOf(card: AgentCard, { name, url, endpoint }: ResolvedOptions): Endpoint {
  const modern = (card.supportedInterfaces ?? []).map((each) => ({
    ...each,
    binding: each.protocolBinding,
  }));
  const legacy = [
    { url: card.url ?? '', binding: card.preferredTransport ?? 'JSONRPC', protocolVersion: '0.3' },
    ...(card.additionalInterfaces ?? []).map((each) => ({
      ...each,
      binding: each.transport,
      protocolVersion: '0.3',
    })),
  ];
  const usable = [...modern, ...legacy].filter(
    (each) => each.binding === 'JSONRPC' && each.url !== '',
  );
  const ofVersion = (major: string) =>
    usable.find((each) => each.protocolVersion?.startsWith(major));
  const chosen = ofVersion('1') ?? ofVersion('0.3');
  if (!chosen) throw unreachable(name, 'offers no JSON-RPC interface of A2A 1.0 or 0.3.');
  const at = endpoint ?? chosen.url;
  // The card could send the headers, with their credentials, to any host.
  if (endpoint === undefined && URL.parse(at)?.origin !== url.origin) {
    throw unreachable(
      name,
      `has a card that names another host (${URL.parse(at)?.origin ?? 'no URL'}). If that is right, pass its address as \`endpoint\`.`,
    );
  }
  return {
    url: at,
    version: chosen.protocolVersion?.startsWith('1') ? '1.0' : '0.3',
    streaming: card.capabilities?.streaming === true,
  };
}

function sendParams({ text, data, ...message }: OutgoingMessage): object {
  return {
    message: { ...message, role: 'ROLE_USER', parts: [data === undefined ? { text } : { data }] },
    configuration: { returnImmediately: true },
  };
}

function legacySendParams({ text, data, ...message }: OutgoingMessage): object {
  const part = data === undefined ? { kind: 'text', text } : { kind: 'data', data };
  return {
    message: { ...message, kind: 'message', role: 'user', parts: [part] },
    configuration: { blocking: false },
  };
}

/** The text that an event adds to the answer. */
function textIn(data: string): string {
  try {
    const { result } = v.parse(rpcResponse, JSON.parse(data));
    const { artifactUpdate, artifact } = v.parse(streamEvent, result);
    const { parts } = artifactUpdate?.artifact ?? artifact ?? {};
    return (parts ?? []).map(({ text }) => text ?? '').join('');
  } catch {
    return '';
  }
}
