import { isWaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { authenticate, type Caller } from './auth.ts';
import type { HandlerOptions } from './handler-options.ts';
import type { ServerLimits } from './limits.ts';
import { createRateLimit } from './rate-limit.ts';

/** Authenticates a request and counts it; `address` is where it comes from, if that is known. Without `auth`, it answers at once. */
export type Identify = (request: Request, address: string | undefined) => Caller | Promise<Caller>;

/** How many credentials that were accepted are remembered, and up to which length. */
const maxKnown = 1000;
const longestKnown = 4096;

/**
 * Authenticates through the `auth` hook. An address with too many failures in a minute is refused without asking the
 * hook, except for credentials that were accepted before: clients behind one proxy share an address, and one of them must
 * not lock out the others.
 */
export function createIdentify(
  { auth }: Pick<HandlerOptions, 'auth'>,
  { limits, clock }: { readonly limits: ServerLimits; readonly clock: Clock },
): Identify {
  const rate = createRateLimit(limits.requestsPerMinute, clock);
  const failures = createRateLimit(limits.failedAuthPerMinute, clock, 'failed authentications');
  const known = new Set<string>();

  if (!auth) {
    return (_, address) => {
      rate.check(address ?? '');
      return {};
    };
  }

  const authenticated = async (request: Request, address: string | undefined): Promise<Caller> => {
    const credential = credentialOf(request);
    if (address !== undefined && !(credential && known.has(credential))) failures.look(address);
    try {
      const caller = await authenticate(auth, request);
      if (credential !== undefined) remember(known, credential);
      return caller;
    } catch (error) {
      if (credential !== undefined) known.delete(credential);
      if (address !== undefined && isRefusal(error)) failures.spend(address);
      throw error;
    }
  };

  return async (request, address) => {
    const caller = await authenticated(request, address);
    rate.check(caller.principal ?? address ?? '');
    return caller;
  };
}

// The newest are kept.
function remember(known: Set<string>, credential: string): void {
  if (known.has(credential)) return;
  known.add(credential);
  const [oldest] = known.size > maxKnown ? known : [];
  if (oldest !== undefined) known.delete(oldest);
}

function credentialOf({ headers }: Request): string | undefined {
  const credential = headers.get('authorization') ?? headers.get('cookie') ?? undefined;
  return credential && credential.length <= longestKnown ? credential : undefined;
}

/** Whether `auth` did not let a request through, because it refused or failed; what may pass, such as UNAVAILABLE, is no answer. */
export function isRefusal(error: unknown): boolean {
  return isWaymarkError(error) && refusals.has(error.status);
}

const refusals: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'INTERNAL']);
