import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { post } from './deliver.ts';
import { addressKinds, type RequestRules } from './destination.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const kindOf = addressKinds({ net });

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001::200e',
])('%s is public', (address) => {
  expect(kindOf(address)).toBe('public');
});

test.each([
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::ffff:10.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:8.8.8.8',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a00:1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  'localhost',
  '',
])('%s is not public', (address) => {
  expect(kindOf(address)).toBe('private');
});

test.each(['127.0.0.1', '127.1.2.3', '::1', '0:0:0:0:0:0:0:1'])('%s is loopback', (address) => {
  expect(kindOf(address)).toBe('loopback');
});

const signal = new AbortController().signal;
const send = (url: string, options: Partial<RequestRules> = {}): ReturnType<typeof post> =>
  post(
    { url, headers: { 'x-test': '1' }, body: '{"ü":1}', signal },
    { timeout: 60_000, ...options },
  );

async function receiver(
  answer: (respond: import('node:http').ServerResponse) => void,
): Promise<{ readonly port: number; readonly got: string[] }> {
  const got: string[] = [];
  const server = createServer((request, respond) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      got.push(`${request.method} ${request.headers.host} ${request.url} ${body}`);
      answer(respond);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, got };
}

test.each([
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:a9fe:a9fe]/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://0/',
  'https://169.254.169.254/latest/meta-data/',
  'https://localhost/',
  'http://example.com/',
  'ftp://example.com/',
  'file:///etc/passwd',
  'https://user:password@example.com/',
  '/relative',
  `https://example.com/${'x'.repeat(3000)}`,
])('refuses %s for good', async (url) => {
  expect(await send(url)).toMatchObject({ isFinal: true });
});

test.each([
  [['10.0.0.1']],
  [['93.184.216.34', '127.0.0.1']],
  [['93.184.216.34', '::ffff:169.254.169.254']],
])('refuses a name that resolves to %j', async (addresses) => {
  const resolve = async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  expect(await send('https://rebinding.example/', { resolve })).toMatchObject({
    error: expect.stringContaining('only public addresses are allowed'),
    isFinal: true,
  });
});

test('connects to the address that was checked, and asks for no other one', async () => {
  const { port, got } = await receiver((respond) => respond.end('ok'));
  let asked = 0;
  const resolve = async () => {
    asked++;
    return [{ address: asked === 1 ? '127.0.0.1' : '10.0.0.1', family: 4 }];
  };
  const url = `http://receiver.example:${port}/hook?x=1`;
  expect(await send(url, { resolve, allowLoopback: true })).toEqual({ status: 200 });
  expect(asked).toBe(1);
  expect(got).toEqual([`POST receiver.example:${port} /hook?x=1 {"ü":1}`]);
});

test('allows plain http to this machine only', async () => {
  const resolve = async () => [{ address: '93.184.216.34', family: 4 }];
  expect(await send('http://example.com/', { resolve, allowLoopback: true })).toEqual({
    error: 'Requests to example.com must use https.',
    isFinal: true,
  });
});

test('follows no redirect', async () => {
  const target = await receiver((respond) => respond.end());
  const { port } = await receiver((respond) => {
    respond.writeHead(307, { location: `http://127.0.0.1:${target.port}/` }).end();
  });
  expect(await send(`http://127.0.0.1:${port}/`, { allowLoopback: true })).toEqual({
    error: 'The receiver answered 307.',
    isFinal: true,
  });
  expect(target.got).toEqual([]);
});

test('reads a bounded part of the response, and waits a bounded time', async () => {
  const endless = await receiver((respond) => {
    const write = (): void => {
      while (!respond.destroyed && respond.write('x'.repeat(10_000)));
    };
    respond.on('drain', write).on('error', () => {});
    write();
  });
  expect(await send(`http://127.0.0.1:${endless.port}/`, { allowLoopback: true })).toEqual({
    status: 200,
  });
  const silent = await receiver(() => {});
  const options = { allowLoopback: true, timeout: 50 };
  expect(await send(`http://127.0.0.1:${silent.port}/`, options)).toMatchObject({ isFinal: false });
});
