import { invalid } from '../core/error.ts';
import { checkNames, type OptionNames } from '../core/options.ts';
import type { Clock } from '../core/time.ts';

/** Headers of each request: a value, or a function that is called before every request (for tokens that expire). */
type ClientHeaders = HeadersInit | (() => HeadersInit | Promise<HeadersInit>);

/** How a dropped stream reconnects. */
interface ReconnectOptions {
  /** Maximum number of consecutive attempts without new data. @default 10 */
  readonly attempts?: number;
  /** Milliseconds before the first attempt; doubles with each attempt, with jitter. @default 200 */
  readonly delay?: number;
  /** Maximum delay between two attempts. @default 10_000 */
  readonly maxDelay?: number;
  /** Milliseconds without data, not even a keep-alive, after which a stream counts as dropped. @default 60_000 */
  readonly idleTimeout?: number;
}

/** The required interface of a WebSocket class; browsers and Node 22 have one. */
type WebSocketClass = new (url: string) => WebSocketLike;

/** The required interface of a WebSocket. */
export interface WebSocketLike {
  /** The state by the numbers of the standard: 1 is open. */
  readonly readyState: number;
  /** Sends one frame. */
  send(text: string): void;
  /** Closes the connection. */
  close(code?: number, reason?: string): void;
  /** Calls the listener on each event of the type. */
  addEventListener(type: 'open' | 'close' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

/** Options of `createClient`. */
export interface ClientOptions {
  /** The address of the server: `https://agents.example.com`, or a path on the page's host. */
  readonly url: string | URL;
  /**
   * Headers for every request. A browser's WebSocket cannot send headers: only `authorization` is sent, inside the
   * first frame, and cookies as usual.
   */
  readonly headers?: ClientHeaders;
  /** @default globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /** @default globalThis.WebSocket */
  readonly WebSocket?: WebSocketClass;
  /** `false`: a stream that drops fails with `UNAVAILABLE`. @default {} */
  readonly reconnect?: ReconnectOptions | false;
  /**
   * The transport of single turns. Over a WebSocket, a stopped client-managed turn keeps its partial answer.
   * @default 'http'
   */
  readonly transport?: 'http' | 'websocket';
  /** The clock for delays; replace it in tests. @default systemClock */
  readonly clock?: Clock;
}

const optionNames: OptionNames<ClientOptions> = {
  url: true,
  headers: true,
  fetch: true,
  WebSocket: true,
  reconnect: true,
  transport: true,
  clock: true,
};

const reconnectNames: OptionNames<ReconnectOptions> = {
  attempts: true,
  delay: true,
  maxDelay: true,
  idleTimeout: true,
};

export function checkClientOptions(options: ClientOptions): void {
  checkNames(options, optionNames, 'createClient()');
  if (options.reconnect) {
    const renamed = { silence: 'idleTimeout' };
    checkNames(options.reconnect, reconnectNames, '`reconnect` of createClient()', renamed);
  }
  // An empty one is the page's own host.
  if (typeof options.url === 'string' || options.url instanceof URL) return;
  throw invalid(
    'createClient() needs the `url` of the server, such as "https://agents.example.com" or "/agents".',
  );
}
