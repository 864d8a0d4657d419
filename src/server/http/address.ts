import { type NodeBindings, remoteAddress } from './connection.ts';
import type { HandlerOptions } from './handler-options.ts';

/** The address that limits count by: what `clientAddress` says, else the other end of the connection. */
export function addressOf(
  { clientAddress }: Pick<HandlerOptions, 'clientAddress'>,
  request: Request,
  env: NodeBindings | undefined,
): string | undefined {
  const address = clientAddress ? clientAddress(request) : remoteAddress(env);
  return address === undefined ? undefined : networkOf(address);
}

/** What one client can use as its own: an IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  const [plain = ''] = address.toLowerCase().split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain);
  if (mapped?.[1]) return mapped[1];
  if (!plain.includes(':')) return plain;
  const [head = '', tail = ''] = plain.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === '' ? [] : tail.split(':');
  const zeros = plain.includes('::') ? Math.max(0, 8 - front.length - back.length) : 0;
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...back];
  return `${groups.slice(0, 4).map(withoutZeros).join(':')}::/64`;
}

function withoutZeros(group: string): string {
  return group.replace(/^0+(?=.)/, '');
}
