import { WaymarkError } from '../core/error.ts';
import { remoteAddress } from './connection.ts';
import { checkLoopbackHost, checkOrigin, isLoopback } from './origin.ts';
import type { ServerContext } from './served.ts';

// What a proxy on this machine says when it speaks for others.
const forwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

/**
 * Refuses whoever is not on this machine. The address of the line counts, and the host that was asked for: a page of
 * another site may have made its name lead here.
 */
export function checkLocal(c: ServerContext): void {
  const address = remoteAddress(c.env);
  const isForwarded = forwarded.some((name) => c.req.header(name) !== undefined);
  if (address === undefined || !isLoopback(address) || isForwarded) {
    throw new WaymarkError('PERMISSION_DENIED', 'This is for clients on the same machine only.');
  }
  checkLoopbackHost(c.req.raw);
  checkOrigin(c.req.raw);
}
