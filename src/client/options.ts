import type { Clock } from '../core/time/clock.ts';

/** Headers of each request: a value, or a function that is asked before every one (for tokens that expire). */
export type ClientHeaders = HeadersInit | (() => HeadersInit | Promise<HeadersInit>);

/** How a dropped stream reconnects. */
export interface ReconnectOptions {
  /** How often in a row without anything new arriving. @default 10 */
  readonly attempts?: number;
  /** Milliseconds before the first try; doubles from try to try, with jitter. @default 200 */
  readonly delay?: number;
  /** The longest wait between two tries. @default 10_000 */
  readonly maxDelay?: number;
  /** A stream on which nothing comes for so long, not even a keep-alive, counts as dropped. @default 60_000 */
  readonly idleTimeout?: number;
}

/** What is needed of a WebSocket class; browsers and Node 22 have one. */
export type WebSocketClass = new (url: string) => WebSocketLike;

/** What is needed of a WebSocket. */
export interface WebSocketLike {
  readonly readyState: number;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: 'open' | 'close' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

export interface ClientOptions {
  /** Where the server is mounted: `https://agents.example.com`, or a path of the page's own host. */
  readonly url: string | URL;
  /**
   * Sent with every request. A browser's WebSocket cannot send headers: there only `authorization` goes along, inside
   * the first frame, and cookies as always.
   */
  readonly headers?: ClientHeaders;
  /** @default globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /** @default globalThis.WebSocket */
  readonly WebSocket?: WebSocketClass;
  /** `false`: a stream that drops fails with `UNAVAILABLE`. @default {} */
  readonly reconnect?: ReconnectOptions | false;
  /**
   * What single turns go over. A WebSocket can also stop a client-managed turn without losing its partial answer.
   * @default 'http'
   */
  readonly transport?: 'http' | 'websocket';
  /** Where waiting comes from; tests bring their own. @default systemClock */
  readonly clock?: Clock;
}
