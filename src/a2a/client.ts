import * as v from 'valibot';
import { createSseParser } from '../client/sse-parser.ts';
import { abortError } from '../core/async/signal.ts';
import { boundResponse } from '../core/bound-response.ts';
import { hasStatus, WaymarkError } from '../core/error.ts';
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

function fromRpcError(
  name: string,
  { code, message }: { readonly code: number; readonly message: string },
): WaymarkError {
  return new WaymarkError(
    codes[code] ?? 'FAILED_PRECONDITION',
    `The remote agent "${name}" refused: ${message.slice(0, longest)}`,
  );
}

function unreachable(name: string, why: string, cause?: unknown): WaymarkError {
  return new WaymarkError('UNAVAILABLE', `The remote agent "${name}" ${why}`, {
    ...(cause !== undefined && { cause }),
    publicMessage: `The remote agent "${name}" is not available.`,
  });
}

/** Whether another attempt may succeed. */
export function isPassing(error: unknown): boolean {
  return hasStatus(error, 'UNAVAILABLE');
}

export interface OutgoingMessage {
  /** Identifies the message: a remote agent that knows it does not act twice. */
  readonly messageId: string;
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
  readonly text?: string | undefined;
  readonly data?: unknown;
}

const maxCardBytes = 1_048_576;
const cardPath = '.well-known/agent-card.json';

export class A2aClient {
  readonly #options: ResolvedOptions;
  readonly #url: string;
  readonly #isModern: boolean;
  readonly streaming: boolean;

  /** Uses JSON-RPC, 1.0 before 0.3, on the host that the card comes from. */
  private constructor(card: AgentCard, options: ResolvedOptions) {
    const { name, url, endpoint } = options;
    const { protocolVersion, url: offered } = interfaceOf(card, name);
    const at = endpoint ?? offered;
    // The card could send the headers, with their credentials, to any host.
    if (endpoint === undefined && URL.parse(at)?.origin !== url.origin) {
      throw unreachable(
        name,
        `has a card that names another host (${URL.parse(at)?.origin ?? 'no URL'}). If that is right, pass its address as \`endpoint\`.`,
      );
    }
    this.#options = options;
    this.#url = at;
    this.#isModern = protocolVersion?.startsWith('1') === true;
    this.streaming = card.capabilities?.streaming === true;
  }

  /** Reads the card of an agent. */
  static async connect(options: ResolvedOptions, signal: AbortSignal): Promise<A2aClient> {
    const { name, requestTimeout, maxMessageBytes } = options;
    const base = options.url.href;
    const url = base.endsWith('.json') ? base : new URL(cardPath, base.replace(/\/*$/, '/'));
    const limits = {
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]),
      maxBytes: Math.min(maxMessageBytes, maxCardBytes),
    };
    const headers = { accept: 'application/json', 'a2a-version': '1.0' };
    const response = await request(options, url, { headers }, limits);
    if (!response.ok) throw unreachable(name, `has no card at ${url}: HTTP ${response.status}.`);
    return new A2aClient(check(name, agentCard, await json(name, response, signal)), options);
  }

  async send(message: OutgoingMessage, signal: AbortSignal): Promise<RemoteTask | RemoteMessage> {
    const params = this.#isModern ? sendParams(message) : legacySendParams(message);
    return this.#check(sent, await this.#call(['SendMessage', 'message/send'], params, signal));
  }

  async get(id: string, signal: AbortSignal): Promise<RemoteTask> {
    return this.#check(remoteTask, await this.#call(['GetTask', 'tasks/get'], { id }, signal));
  }

  async follow(id: string, signal: AbortSignal, stream: TaskStream): Promise<void> {
    const accept = 'text/event-stream';
    const method = ['SubscribeToTask', 'tasks/resubscribe'] as const;
    const response = await this.#post(method, { id }, accept, signal);
    const isStream = response.headers.get('content-type')?.startsWith(accept);
    if (!response.ok || !isStream) {
      await response.body?.cancel();
      throw unreachable(this.#options.name, 'does not stream its tasks.');
    }
    const parser = createSseParser();
    for await (const bytes of response.body ?? []) {
      await stream.onBytes(bytes.length, signal);
      for (const { data } of parser.push(bytes)) stream.onEvent(textIn(data));
    }
  }

  async cancel(id: string, signal: AbortSignal): Promise<void> {
    await this.#call(['CancelTask', 'tasks/cancel'], { id }, signal);
  }

  async #call(method: Method, params: object, signal: AbortSignal): Promise<unknown> {
    const { name, requestTimeout } = this.#options;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]);
    const response = await this.#post(method, params, 'application/json', limited);
    const { result, error } = this.#check(rpcResponse, await json(name, response, signal));
    if (error) throw fromRpcError(name, error);
    if (!response.ok) throw unreachable(name, `answered with HTTP ${response.status}.`);
    return result;
  }

  async #post(
    [modern, legacy]: Method,
    params: object,
    accept: string,
    signal: AbortSignal,
  ): Promise<Response> {
    const version = this.#isModern ? '1.0' : '0.3';
    const headers = { 'content-type': 'application/json', accept, 'a2a-version': version };
    const method = this.#isModern ? modern : legacy;
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const limits = { signal, maxBytes: this.#options.maxMessageBytes };
    return await request(this.#options, this.#url, { method: 'POST', headers, body }, limits);
  }

  #check<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
    return check(this.#options.name, schema, value);
  }
}

type Method = readonly [modern: string, legacy: string];

async function request(
  options: ResolvedOptions,
  url: string | URL,
  init: RequestInit & { readonly headers: Readonly<Record<string, string>> },
  { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
): Promise<Response> {
  const { name, headers } = options;
  const own = typeof headers === 'function' ? await headers() : headers;
  try {
    const response = await options.fetch(url, {
      ...init,
      headers: { ...own, ...init.headers },
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
}

async function json(name: string, response: Response, signal: AbortSignal): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    throw unreachable(name, `answered with HTTP ${response.status} and no JSON.`, error);
  }
}

function check<Schema extends v.GenericSchema>(
  name: string,
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value, { abortEarly: true });
  if (parsed.success) return parsed.output;
  throw unreachable(name, 'answered with something that is not A2A.');
}

/** The JSON-RPC interface of a card: of 1.0, else of 0.3. */
function interfaceOf(
  card: AgentCard,
  name: string,
): { readonly url: string; readonly protocolVersion?: string | undefined } {
  const legacy = [
    { url: card.url ?? '', transport: card.preferredTransport ?? 'JSONRPC' },
    ...(card.additionalInterfaces ?? []),
  ].map(({ url, transport }) => ({ url, protocolBinding: transport, protocolVersion: '0.3' }));
  const usable = [...(card.supportedInterfaces ?? []), ...legacy].filter(
    ({ protocolBinding, url }) => protocolBinding === 'JSONRPC' && url !== '',
  );
  const ofVersion = (major: string) =>
    usable.find((each) => each.protocolVersion?.startsWith(major));
  const chosen = ofVersion('1') ?? ofVersion('0.3');
  if (!chosen) throw unreachable(name, 'offers no JSON-RPC interface of A2A 1.0 or 0.3.');
  return chosen;
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
