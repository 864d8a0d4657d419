import { WaymarkError } from '../../core/error.ts';

/** Whether a host name or address is this machine's own. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '');
  if (name === 'localhost' || name.endsWith('.localhost') || name === '::1') return true;
  return /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

/** Whether a Host header is one of the usual names of this machine; `false` means that it has to be looked at. */
export function isPlainLoopback(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/.test(host);
}

/** The host name of a request as its client wrote it. */
function requestHost(request: Request): string | undefined {
  const host = request.headers.get('host') ?? safeUrl(request.url)?.host;
  return host === undefined ? undefined : safeUrl(`http://${host}`)?.hostname;
}

/**
 * Refuses a request that did not name this machine. A page of another site can make its own host name lead here, and
 * would then read everything as if it came from here.
 */
export function checkLoopbackHost(request: Request): void {
  const host = requestHost(request);
  if (host !== undefined && isLoopback(host)) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Only requests to localhost are answered here. Give the server an auth hook to answer others.',
  );
}

/** Which other sites may call. `true`: all of them. */
export type AllowedOrigins = true | readonly string[];

/**
 * Refuses a request that a page of another site made a browser send. Browsers name the page's origin on every request
 * that can change something and on every WebSocket; programs name none.
 */
export function checkOrigin(
  request: Request,
  {
    allowed = [],
    localOnly = false,
  }: {
    readonly allowed?: AllowedOrigins | undefined;
    /** A page of this machine only; a page of any other host came through a proxy. @default false */
    readonly localOnly?: boolean;
  } = {},
): void {
  const origin = request.headers.get('origin');
  if (origin === null || allowed === true || allowed.includes(origin)) return;
  const page = safeUrl(origin);
  // Set by the browser itself, where a proxy in front has changed the host.
  const isSameSite = request.headers.get('sec-fetch-site') === 'same-origin';
  if (isSameSite && (!localOnly || (page && isLoopback(page.hostname)))) return;
  if (page && page.host === hostWithPort(request)) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Pages of this origin may not call this server. Allow it with the cors option.',
  );
}

function hostWithPort(request: Request): string | undefined {
  const host = request.headers.get('host');
  return host === null ? safeUrl(request.url)?.host : safeUrl(`http://${host}`)?.host;
}

function safeUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
