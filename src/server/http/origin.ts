import type { IncomingHttpHeaders } from 'node:http';
import { invalid, WaymarkError } from '../../core/error.ts';
import { headerOf, headersOf, type RequestLine, remoteAddress } from './connection.ts';
import type { HandlerOptions } from './handler-options.ts';
import type { RequestContext, ServerContext } from './server-context.ts';

/** Whether a host name or address is this machine's own. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '');
  if (name === 'localhost' || name.endsWith('.localhost') || name === '::1') return true;
  return /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

/** Whether a Host header is one of the usual names of this machine; `false` means that it has to be looked at. */
function isPlainLoopback(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/.test(host);
}

/** Checks of requests and WebSockets that do not depend on the caller. `canChange`: it may do more than read. */
export function checkRequest(
  c: RequestLine,
  { options, limits }: Pick<ServerContext, 'options' | 'limits'>,
  canChange: boolean,
): void {
  const request = c.req.raw;
  if (request.url.length > limits.urlLength) {
    throw invalid(`The URL is over the limit of ${limits.urlLength} characters.`);
  }
  if (!options.auth) {
    if (!isPlainLoopback(headerOf(c, 'host'))) checkLoopbackHost(request);
    checkNotForwarded(headersOf(c));
  }
  if (canChange && headerOf(c, 'origin') !== undefined) {
    checkOrigin(request, { allowed: options.cors?.origins, localOnly: !options.auth });
  }
}

/** The server's address as the client of a request wrote it. */
function askedAddress({ headers, url }: Request): URL | null {
  const host = headers.get('host');
  return URL.parse(host === null ? url : `http://${host}`);
}

/**
 * Refuses a request that did not name this machine. A page of another site can make its own host name lead here, and
 * would then read everything as if it came from here.
 */
export function checkLoopbackHost(request: Request): void {
  const asked = askedAddress(request);
  if (asked && isLoopback(asked.hostname)) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Only requests to localhost are answered here. Give the server an auth hook to answer others.',
  );
}

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
    readonly allowed?: NonNullable<HandlerOptions['cors']>['origins'] | undefined;
    /** A page of this machine only; a page of any other host came through a proxy. @default false */
    readonly localOnly?: boolean;
  } = {},
): void {
  const origin = request.headers.get('origin');
  if (origin === null || allowed === true || allowed.includes(origin)) return;
  const page = URL.parse(origin);
  // Set by the browser itself, where a proxy in front has changed the host.
  const isSameSite = request.headers.get('sec-fetch-site') === 'same-origin';
  if (isSameSite && (!localOnly || (page && isLoopback(page.hostname)))) return;
  if (page && page.host === askedAddress(request)?.host) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Pages of this origin may not call this server. Allow it with the cors option.',
  );
}

// Headers that proxies, load balancers and content delivery networks put on requests.
const proxyHeader =
  /^(?:forwarded|via|x-forwarded(?:-.+)?|x-original-(?:forwarded-for|host)|x-real-ip|x-client-ip|x-cluster-client-ip|x-envoy-.+|x-amzn-trace-id|x-cloud-trace-context|x-appengine-.+|x-azure-.+|x-vercel-.+|true-client-ip|fastly-client-ip|fly-client-ip|cf-.+|cdn-loop|akamai-.+)$/;

function isForwarded(headers: Headers | IncomingHttpHeaders): boolean {
  const names = headers instanceof Headers ? headers.keys() : Object.keys(headers);
  for (const name of names) if (proxyHeader.test(name)) return true;
  return false;
}

/**
 * Refuses a request that a proxy passed on for another machine. A proxy may rewrite the Host header, so that the request
 * looks as if it came from here. Development servers such as that of Next name themselves too, with this machine as the
 * client: those may pass.
 */
function checkNotForwarded(headers: Headers | IncomingHttpHeaders): void {
  if (!isForwarded(headers) || isForwardedLocally(headers)) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'This request came through a proxy, and this server does not authenticate its callers. Give it an auth hook to serve other machines.',
  );
}

const localOnly = /^x-forwarded-(?:for|host|port|proto)$/;

function isForwardedLocally(headers: Headers | IncomingHttpHeaders): boolean {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const forwarded = entries.filter(([name]) => proxyHeader.test(name));
  const valueAt = (wanted: string): string | undefined => {
    const value = forwarded.find(([name]) => name === wanted)?.[1];
    return Array.isArray(value) ? value.join(',') : value;
  };
  if (!forwarded.every(([name]) => localOnly.test(name))) return false;
  const clients = valueAt('x-forwarded-for')?.split(',') ?? [];
  const hosts = valueAt('x-forwarded-host')?.split(',') ?? [];
  return (
    clients.length > 0 &&
    clients.every((client) => isLoopback(client.trim())) &&
    hosts.every((host) => isLoopback(URL.parse(`http://${host.trim()}`)?.hostname ?? host.trim()))
  );
}

/**
 * Refuses clients that are not on this machine. The address of the line counts, and the host that was asked for: a page of
 * another site may have made its name lead here.
 */
export function requireLoopback(c: RequestLine): void {
  const address = remoteAddress(c.env);
  if (address === undefined || !isLoopback(address) || isForwarded(headersOf(c))) {
    throw new WaymarkError('PERMISSION_DENIED', 'This is for clients on the same machine only.');
  }
  checkLoopbackHost(c.req.raw);
  checkOrigin(c.req.raw);
}

/** The address under which clients reach this server, without a slash at the end: the one that was set, or that of the request. */
export function publicUrl(c: RequestContext, url: string | undefined): string {
  const { basePath = '' } = c.get('server').options;
  return url?.replace(/\/+$/, '') ?? `${new URL(c.req.url).origin}${basePath}`;
}

/** Refuses an address that clients could not use. */
export function checkPublicUrl(url: string | undefined, option: string): void {
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? '')) return;
  throw invalid(`${option} must be the public http(s) URL of this server.`);
}
