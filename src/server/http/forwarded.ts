import type { IncomingHttpHeaders } from 'node:http';
import { WaymarkError } from '../../core/error.ts';
import { isLoopback } from './origin.ts';

// What proxies, load balancers and content delivery networks put on the requests that they pass on.
const proxyHeader =
  /^(?:forwarded|via|x-forwarded(?:-.+)?|x-original-(?:forwarded-for|host)|x-real-ip|x-client-ip|x-cluster-client-ip|x-envoy-.+|x-amzn-trace-id|x-cloud-trace-context|x-appengine-.+|x-azure-.+|x-vercel-.+|true-client-ip|fastly-client-ip|fly-client-ip|cf-.+|cdn-loop|akamai-.+)$/;

/** Whether a request was passed on by a proxy. */
export function isForwarded(headers: Headers | IncomingHttpHeaders): boolean {
  const names = headers instanceof Headers ? headers.keys() : Object.keys(headers);
  for (const name of names) if (proxyHeader.test(name)) return true;
  return false;
}

/**
 * Refuses a request that a proxy passed on for another machine. A proxy may rewrite the Host header, so that the request
 * looks as if it came from here. Development servers such as that of Next name themselves too, with this machine as the
 * client: those may pass.
 */
export function checkNotForwarded(headers: Headers | IncomingHttpHeaders): void {
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
    hosts.every((host) => isLoopback(hostName(host.trim())))
  );
}

function hostName(host: string): string {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : host;
}
