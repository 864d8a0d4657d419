import { WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';

/** How much one request, one principal and the whole server may take. */
export interface ServerLimits {
  /** Bytes of a request body, or of a WebSocket frame. @default 8 MiB */
  readonly bodyBytes: number;
  /** Maximum nesting depth of the JSON of a body. @default 128 */
  readonly jsonDepth: number;
  /**
   * Values in the JSON of a body or frame: array items, properties, arrays and objects. Parsing and checking a body takes
   * time and memory in proportion to it. @default 30000
   */
  readonly jsonValues: number;
  /** Characters of a request's URL. @default 8192 */
  readonly urlLength: number;
  /** Bytes of all headers of a request; `serve` only. @default 16 KiB */
  readonly headerBytes: number;
  /** Milliseconds within which a request, including its body, must arrive. @default 30 s */
  readonly requestTimeout: number;
  /** Concurrent connections on which no request has been accepted yet; `serve` only. @default 1000 */
  readonly unauthenticated: number;
  /** The same for one address, or for one IPv6 /64 network, a second after they were opened. @default 100 */
  readonly unauthenticatedPerAddress: number;
  /** Milliseconds within which a WebSocket must send its first frame and be authenticated. @default 5 s */
  readonly authTimeout: number;
  /** Failed authentications from one address per minute; after that, the address is rejected for a while. @default 60 */
  readonly failedAuthPerMinute: number;
  /** Open streams and WebSockets of all clients. @default 10000 */
  readonly streams: number;
  /** Open streams and WebSockets of one principal. @default 100 */
  readonly streamsPerPrincipal: number;
  /** Concurrent turns of one principal. @default 20 */
  readonly turnsPerPrincipal: number;
  /** Background runs of one principal that have not ended, in all processes. @default 100 */
  readonly backgroundRunsPerPrincipal: number;
  /** Requests per minute of one principal; unlimited by default. */
  readonly requestsPerMinute?: number;
  /** Milliseconds that a client may leave a full stream unread before it is disconnected. @default 30 s */
  readonly stallTimeout: number;
}

const defaults: ServerLimits = {
  bodyBytes: 8 * 1024 * 1024,
  jsonDepth: 128,
  jsonValues: 30_000,
  urlLength: 8192,
  headerBytes: 16 * 1024,
  requestTimeout: 30_000,
  unauthenticated: 1000,
  unauthenticatedPerAddress: 100,
  authTimeout: 5_000,
  failedAuthPerMinute: 60,
  streams: 10_000,
  streamsPerPrincipal: 100,
  turnsPerPrincipal: 20,
  backgroundRunsPerPrincipal: 100,
  stallTimeout: 30_000,
};

const limitNames = Object.fromEntries(Object.keys(defaults).map((name) => [name, true as const]));

/** The given limits over the defaults; one that is not a positive number is refused. */
export function resolveLimits(given: Partial<ServerLimits> = {}): ServerLimits {
  checkOptions(given, { ...limitNames, requestsPerMinute: true }, '`limits`');
  const limits: ServerLimits = { ...defaults, ...given };
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value === 'number' && value > 0) continue;
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `limits.${name} must be a positive number, not ${String(value)}.`,
    );
  }
  return limits;
}
