import type { OptionNames } from '../../core/options.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Auth, Authorize } from './auth.ts';
import type { ServerLimits } from './limits.ts';
import type { Log } from './log.ts';
import type { AllowedOrigins } from './origin.ts';

/** Which pages of other sites may call, and whether with cookies. */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `true` for all, which excludes `credentials`. */
  readonly origins: AllowedOrigins;
  /** @default false */
  readonly credentials?: boolean;
}

/** How agents are offered to MCP clients. */
export interface McpServerOptions {
  /** The names of the agents to offer. @default all agents with a store */
  readonly agents?: readonly string[];
  /** What the server is for; clients give it to their model. */
  readonly instructions?: string;
  /** The name that clients show. @default 'waymark' */
  readonly name?: string;
  /** The version that clients show. @default '1' */
  readonly version?: string;
  /**
   * Signs what clients hold while their user answers an interrupt. At least 32 bytes. Give it where several processes serve,
   * or answers must be accepted after a restart. To rotate it, give several: the first one signs. @default random
   */
  readonly secret?: string | readonly string[] | undefined;
}

/** How an app is served. */
export interface HandlerOptions {
  /** Authenticates requests. Without it, the server answers only requests to a loopback host, and all clients share all sessions. */
  readonly auth?: Auth | undefined;
  /** Authorizes each call of an authenticated client. */
  readonly authorize?: Authorize | undefined;
  /** The path under which the handler is mounted. @default '' */
  readonly basePath?: string | undefined;
  /**
   * The address of the client, for limits that count by address. Behind a proxy, read the header that your proxy sets: by
   * default all clients of a proxy share its address.
   */
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined;
  /**
   * Milliseconds after which the caller of an open stream or WebSocket is authenticated again, with the request that opened
   * it. When `auth` refuses it, or names another principal, the connection ends. Absent: once, when it is opened.
   */
  readonly reauthenticate?: number | undefined;
  /** Absent: only pages of the same origin. */
  readonly cors?: CorsOptions | undefined;
  /**
   * What happens to a turn whose client disconnects: it continues and the client can reconnect, or it is aborted.
   * @default 'continue'
   */
  readonly onDisconnect?: 'continue' | 'abort' | undefined;
  /** Milliseconds without data on a stream after which a keep-alive is sent. @default 15000 */
  readonly keepAlive?: number | undefined;
  readonly limits?: Partial<ServerLimits> | undefined;
  /**
   * The calls of Genkit's development tools under `/api`, for clients on this machine only; they run any action.
   * @default true without `auth`, else false
   */
  readonly reflection?: boolean | undefined;
  /** Offers the agents as tools to MCP clients, at `/mcp`. @default false */
  readonly mcp?: boolean | McpServerOptions | undefined;
  /** Compresses responses that are not streams. @default true */
  readonly compress?: boolean | undefined;
  /** Gets one entry per request and per failure. By default `serve` writes JSON lines to standard output, and `handler` logs nothing. */
  readonly log?: Log | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** The options of `handler`. */
export const handlerOptionNames: OptionNames<HandlerOptions> = {
  auth: true,
  authorize: true,
  basePath: true,
  clientAddress: true,
  reauthenticate: true,
  cors: true,
  onDisconnect: true,
  keepAlive: true,
  limits: true,
  reflection: true,
  compress: true,
  mcp: true,
  log: true,
  clock: true,
};
