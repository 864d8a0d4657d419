import type { Network } from '../core/platform.ts';

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

/** Where an address leads. */
export type AddressKind = 'public' | 'loopback' | 'private';

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
