import type { LookupAddress } from 'node:dns';
import { raceSignal } from '../core/async/signal.ts';
import { hasStatus, invalid, WaymarkError } from '../core/error.ts';
import { loadNetwork, type Network } from './network.ts';

interface DestinationRules {
  /** Also allows `http` and `https` to this machine, for development and tests. @default false */
  readonly allowLoopback?: boolean | undefined;
  /** Resolves a name to all of its addresses. @default the resolver of the system */
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
}

export interface RequestRules extends DestinationRules {
  /** Milliseconds for the whole request, and for resolving the name of its destination. */
  readonly timeout: number;
}

const maxUrlLength = 2_048;

/** Parses a URL that requests are sent to; INVALID_ARGUMENT for one that can never be allowed. `what` names it. */
export function parseDestination(
  url: string,
  { allowLoopback = false }: DestinationRules,
  what = 'The URL of a webhook',
): URL {
  const refuse = (why: string): WaymarkError => invalid(`${what} ${why}`);
  const parsed = url.length <= maxUrlLength ? URL.parse(url) : null;
  if (!parsed) throw refuse(`must be an absolute URL of at most ${maxUrlLength} characters.`);
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
  {
    allowLoopback = false,
    resolve = (hostname) => network.dns.lookup(hostname, { all: true }),
  }: DestinationRules,
  network: Network,
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
    ...rules
  }: RequestRules & {
    /** Allows a name that cannot be resolved at the moment. @default false */
    readonly mayBeUnknown?: boolean;
  },
): Promise<void> {
  const parsed = parseDestination(url, rules);
  try {
    const found = resolveDestination(parsed, rules, loadNetwork());
    await raceSignal(found, AbortSignal.timeout(rules.timeout));
  } catch (error) {
    // Without a network, another process delivers and checks.
    if (hasStatus(error, 'UNIMPLEMENTED')) return;
    if (mayBeUnknown && !hasStatus(error, 'PERMISSION_DENIED')) return;
    throw invalid('The URL of a webhook must lead to a public https address.', { cause: error });
  }
}

/** IPv4 networks that are not on the public internet, or not for unicast. */
const reserved4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** Public unicast IPv6 is 2000::/3, without these: special purposes, documentation, and tunnels that contain IPv4 addresses. */
const reserved6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

const loopback = ['127.0.0.0/8', '::1/128'];

type AddressKind = 'public' | 'loopback' | 'private';

/** Tells public addresses from those that only this machine or its network can reach. Everything unknown is private. */
export function addressKinds({ net }: Pick<Network, 'net'>): (address: string) => AddressKind {
  const listOf = (networks: readonly string[]): InstanceType<typeof net.BlockList> => {
    const list = new net.BlockList();
    for (const each of networks) {
      const [address = '', prefix] = each.split('/');
      list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
    }
    return list;
  };
  const local = listOf(loopback);
  const reserved = listOf([...reserved4, ...reserved6]);
  const global6 = listOf(['2000::/3']);
  return (address) => {
    switch (net.isIP(address)) {
      case 4:
        if (local.check(address)) return 'loopback';
        return reserved.check(address) ? 'private' : 'public';
      case 6: {
        // A scope id is only for local networks.
        if (address.includes('%')) return 'private';
        if (/^(0*:)*:?0*1$/.test(address) && local.check(address, 'ipv6')) return 'loopback';
        const isPublic = global6.check(address, 'ipv6') && !reserved.check(address, 'ipv6');
        return isPublic ? 'public' : 'private';
      }
      default:
        return 'private';
    }
  };
}
