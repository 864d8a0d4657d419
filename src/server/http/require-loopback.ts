import { WaymarkError } from '../../core/error.ts';
import { headersOf, remoteAddress } from './connection.ts';
import { isForwarded } from './forwarded.ts';
import { checkLoopbackHost, checkOrigin, isLoopback } from './origin.ts';
import type { RequestContext } from './server-context.ts';

/**
 * Refuses clients that are not on this machine. The address of the line counts, and the host that was asked for: a page of
 * another site may have made its name lead here.
 */
export function requireLoopback(c: RequestContext): void {
  const address = remoteAddress(c.env);
  if (address === undefined || !isLoopback(address) || isForwarded(headersOf(c))) {
    throw new WaymarkError('PERMISSION_DENIED', 'This is for clients on the same machine only.');
  }
  checkLoopbackHost(c.req.raw);
  checkOrigin(c.req.raw);
}
