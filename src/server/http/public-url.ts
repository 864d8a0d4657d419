import { WaymarkError } from '../../core/error.ts';
import type { RequestContext, ServerContext } from './server-context.ts';

/** The address under which clients reach this server, without a slash at the end: the one that was set, or that of the request. */
export function publicUrl(
  { options: { basePath = '' } }: ServerContext,
  c: RequestContext,
  url: string | undefined,
): string {
  return url?.replace(/\/+$/, '') ?? `${new URL(c.req.url).origin}${basePath}`;
}

/** Refuses an address that clients could not use. */
export function checkPublicUrl(url: string | undefined, option: string): void {
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? '')) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `${option} must be the public http(s) URL of this server.`,
  );
}
