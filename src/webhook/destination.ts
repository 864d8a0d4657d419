import type { LookupAddress } from 'node:dns';
import { raceSignal } from '../core/async/signal.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import { loadNetwork, type Network } from '../core/platform.ts';
import { addressKinds } from './public-address.ts';

/** Which addresses requests may go to. */
export interface DestinationRules {
  /** Also allows `http` and `https` to this machine, for development and tests. @default false */
  readonly allowLoopback?: boolean | undefined;
}

/** Resolves a name to all of its addresses. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

const longestUrl = 2_048;

/** Parses a URL that requests are sent to; INVALID_ARGUMENT for one that can never be allowed. `what` names it. */
export function parseDestination(
  url: string,
  { allowLoopback = false }: DestinationRules,
  what = 'The URL of a webhook',
): URL {
  const refuse = (why: string): WaymarkError =>
    new WaymarkError('INVALID_ARGUMENT', `${what} ${why}`);
  const parsed = url.length <= longestUrl ? URL.parse(url) : null;
  if (!parsed) throw refuse(`must be an absolute URL of at most ${longestUrl} characters.`);
  if (parsed.username !== '' || parsed.password !== '') throw refuse('must not have credentials.');
  if (parsed.protocol === 'https:') return parsed;
  if (parsed.protocol === 'http:' && allowLoopback) return parsed;
  throw refuse('must begin with https://.');
}

/**
 * The address to connect to. Every address of the name must be allowed, and the connection uses the one returned here, so that
 * a name that resolves to another address a moment later leads nowhere else.
 */
export async function resolveDestination(
  url: URL,
  { allowLoopback = false }: DestinationRules,
  network: Network,
  resolve: Resolve = (hostname) => network.dns.lookup(hostname, { all: true }),
): Promise<LookupAddress> {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const literal = network.net.isIP(hostname);
  const addresses =
    literal === 0 ? await resolve(hostname) : [{ address: hostname, family: literal }];
  const [first] = addresses;
  if (first === undefined) throw new Error(`${hostname} has no address.`);
  const kindOf = addressKinds(network);
  for (const { address } of addresses) {
    const kind = kindOf(address);
    if (kind === 'loopback' && allowLoopback) continue;
    if (kind === 'public' && url.protocol === 'https:') continue;
    throw new WaymarkError(
      'PERMISSION_DENIED',
      kind === 'public'
        ? `Requests to ${hostname} must use https.`
        : `${hostname} leads to the ${kind} address ${address}; only public addresses are allowed.`,
    );
  }
  return first;
}

/**
 * Refuses a URL that does not lead to an allowed address now, with one text for all reasons, so that a caller cannot find out what the
 * names of this network resolve to.
 */
export async function checkDestination(
  url: string,
  {
    mayBeUnknown = false,
    timeout,
    resolve,
    ...rules
  }: DestinationRules & {
    /** Allows a name that cannot be resolved at the moment. @default false */
    readonly mayBeUnknown?: boolean;
    /** Milliseconds for resolving the name. */
    readonly timeout: number;
    /** @default the resolver of the system */
    readonly resolve?: Resolve;
  },
): Promise<void> {
  const parsed = parseDestination(url, rules);
  try {
    const found = resolveDestination(parsed, rules, loadNetwork('Webhooks'), resolve);
    await raceSignal(found, AbortSignal.timeout(timeout));
  } catch (error) {
    // Without a network, another process delivers and checks.
    if (isWaymarkError(error) && error.status === 'UNIMPLEMENTED') return;
    if (mayBeUnknown && !(isWaymarkError(error) && error.status === 'PERMISSION_DENIED')) return;
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'The URL of a webhook must lead to a public https address.',
      { cause: error },
    );
  }
}
