import { abortError, throwIfAborted } from '../core/async/signal.ts';
import { invalid, isWaymarkError, type Status, WaymarkError } from '../core/error.ts';
import { backoff, type Clock, randomFraction, systemClock } from '../core/time.ts';
import { currentTrace } from '../core/trace-context.ts';
import { checkId } from '../protocol/ids.ts';
import { type Operation, routes } from '../protocol/routes.ts';
import type { ClientOptions, WebSocketLike } from './options.ts';
import { foreignResponse, isNotFound, responseError } from './remote-error.ts';

export interface RemoteRequest {
  readonly operation: Operation;
  /** Values of the path's `:name` parts. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface Transport {
  readonly clock: Clock;
  readonly reconnect: ReturnType<typeof toReconnect>;
  /** The response, whatever its status; `UNAVAILABLE` when there is none. */
  fetch(request: RemoteRequest): Promise<Response>;
  /** The JSON of a response that is ok, `null` where it has none; otherwise throws the error the server sent. */
  json<T>(request: RemoteRequest): Promise<T>;
  /** As {@link Transport.json}, but `undefined` when the server knows nothing of the kind. */
  find<T>(request: RemoteRequest): Promise<T | undefined>;
  /** A WebSocket that is being opened, and what stands in for the header it may not have sent. */
  connect(
    request: Pick<RemoteRequest, 'operation' | 'params' | 'query'>,
  ): Promise<{ readonly socket: WebSocketLike; readonly authorization?: string }>;
}

export function createTransport({
  url,
  headers: configured = {},
  fetch: send = globalThis.fetch,
  WebSocket = globalThis.WebSocket,
  reconnect = {},
  clock = systemClock,
}: ClientOptions): Transport {
  const base = String(url).replace(/\/+$/, '');

  const headersOf = async (extra: Readonly<Record<string, string>> = {}): Promise<Headers> => {
    const headers = new Headers(typeof configured === 'function' ? await configured() : configured);
    for (const [name, value] of Object.entries({ ...currentTrace(), ...extra })) {
      headers.set(name, value);
    }
    return headers;
  };

  const transport: Transport = {
    clock,
    reconnect: toReconnect(reconnect),

    async fetch(request) {
      const { operation, body, signal } = request;
      throwIfAborted(signal);
      const target = base + pathOf(request);
      const headers = await headersOf(request.headers);
      if (body !== undefined) headers.set('content-type', 'application/json');
      try {
        // Called without a receiver: a browser's fetch refuses to be the method of another object.
        return await send(target, {
          method: routes[operation].method,
          headers,
          body: body === undefined ? null : JSON.stringify(body),
          signal: signal ?? null,
        });
      } catch (cause) {
        if (signal?.aborted) throw abortError(signal);
        throw unreachable(base, cause);
      }
    },

    async json(request) {
      const response = await transport.fetch(request);
      if (!response.ok) throw await responseError(response);
      try {
        return response.status === 204 ? null : await response.json();
      } catch (cause) {
        if (request.signal?.aborted) throw abortError(request.signal);
        if (cause instanceof SyntaxError) throw foreignResponse(response, 'UNKNOWN', cause);
        throw unreachable(base, cause);
      }
    },

    async find<T>(request: RemoteRequest) {
      try {
        return await transport.json<T>(request);
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },

    async connect(request) {
      if (!WebSocket) {
        throw new WaymarkError(
          'UNIMPLEMENTED',
          'There is no WebSocket here: give createClient one as `WebSocket`, or use single turns.',
        );
      }
      const authorization = (await headersOf()).get('authorization');
      const socket = new WebSocket(socketUrl(base + pathOf(request)));
      return authorization === null ? { socket } : { socket, authorization };
    },
  };
  return transport;
}

function pathOf({ operation, params = {}, query = {} }: RemoteRequest): string {
  const path = routes[operation].path.replace(/:(\w+)/g, (_, name: string) => {
    const value: unknown = params[name];
    checkId(value, `the id of a ${name}`);
    // Empty and dotted parts would make another path, with another meaning; no encoding hides them.
    if (value === '' || /^\.\.?$/.test(value)) {
      throw invalid(`"${value}" cannot be the id of a ${name}.`);
    }
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}

function socketUrl(url: string): string {
  const absolute = new URL(url, globalThis.location?.href);
  absolute.protocol = absolute.protocol === 'https:' ? 'wss:' : 'ws:';
  return absolute.href;
}

function unreachable(base: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    `Cannot reach "${base}": check that the server runs and that the URL and its origin are allowed.`,
    { cause },
  );
}

function toReconnect(options: NonNullable<ClientOptions['reconnect']>) {
  const {
    attempts = 10,
    delay = 200,
    maxDelay = 10_000,
    idleTimeout = 60_000,
  } = options || { attempts: 0 };
  return {
    /** Milliseconds of silence after which a stream counts as dropped. */
    idleTimeout,
    /** How long to wait before a try, from 1 on; `undefined` when it is one too many. */
    delayOf(attempt: number): number | undefined {
      if (attempt > attempts) return undefined;
      return backoff(attempt, { baseMs: delay, maxMs: maxDelay, jitter: randomFraction });
    },
  };
}

const passing: ReadonlySet<Status> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'INTERNAL',
  'UNKNOWN',
]);

/** Whether the same request may well succeed a little later. */
export function isPassing(status: Status): boolean {
  return passing.has(status);
}

/** How often something is sent whose answer was lost. */
export const maxTries = 4;

/** Retries `work` while the server cannot be reached. */
export async function retried<T>(
  { reconnect, clock }: Transport,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const delay = reconnect.delayOf(tries);
      const mayPass = isWaymarkError(error) && isPassing(error.status);
      if (delay === undefined || !mayPass || tries >= most) throw error;
      await clock.sleep(delay, signal);
    }
  }
}

/** Calls `onSilence` when nothing has come for as long as the client was told to wait. */
export function createIdleTimeout(
  { clock, reconnect: { idleTimeout } }: Pick<Transport, 'clock' | 'reconnect'>,
  onSilence: () => void,
) {
  let last = clock.now();
  let looks = 0;
  // One timer that looks now and then, not one for each piece that arrives. It also counts its looks: a clock that was set
  // back would hide a dead line.
  const end = clock.every(Math.max(idleTimeout / 4, 1), () => {
    if (++looks <= 4 && clock.now() - last <= idleTimeout) return;
    end();
    onSilence();
  });
  return {
    /** Notes that data arrived. */
    heard(): void {
      last = clock.now();
      looks = 0;
    },
    end,
  };
}
