import { expect, test } from 'vitest';
import { checkLoopbackHost, checkOrigin, isLoopback } from './origin.ts';

test.each([
  'localhost',
  'LOCALHOST',
  'app.localhost',
  '127.0.0.1',
  '127.8.9.1',
  '::1',
  '[::1]',
  '::ffff:127.0.0.1',
])('%s is this machine', (host) => expect(isLoopback(host)).toBe(true));

test.each([
  '127.0.0.1.example.com',
  'localhost.example.com',
  '0.0.0.0',
  '10.0.0.1',
  '128.0.0.1',
  '::',
  '',
])('%s is not', (host) => expect(isLoopback(host)).toBe(false));

test('a name that was made to lead here is refused', () => {
  const asked = (host: string): Request => new Request('http://127.0.0.1/', { headers: { host } });
  expect(() => checkLoopbackHost(asked('evil.example:3000'))).toThrow(/localhost/);
  expect(() => checkLoopbackHost(asked('localhost:3000'))).not.toThrow();
  expect(() => checkLoopbackHost(asked('[::1]:3000'))).not.toThrow();
});

test('pages of other origins may not change anything', () => {
  const from = (headers: Record<string, string>): Request =>
    new Request('http://localhost:3000/', { headers: { host: 'localhost:3000', ...headers } });
  expect(() => checkOrigin(from({}))).not.toThrow();
  expect(() => checkOrigin(from({ origin: 'http://localhost:3000' }))).not.toThrow();
  expect(() => checkOrigin(from({ origin: 'http://localhost:4000' }))).toThrow(/cors/);
  expect(() => checkOrigin(from({ origin: 'null' }))).toThrow(/cors/);
  expect(() =>
    checkOrigin(from({ origin: 'https://a.example' }), { allowed: ['https://a.example'] }),
  ).not.toThrow();
  expect(() =>
    checkOrigin(from({ origin: 'https://b.example' }), { allowed: ['https://a.example'] }),
  ).toThrow();
  expect(() =>
    checkOrigin(from({ origin: 'https://x.example', 'sec-fetch-site': 'same-origin' })),
  ).not.toThrow();
  // Without auth, a page of another host can only have come through a proxy.
  const localOnly = { localOnly: true };
  const seen = { 'sec-fetch-site': 'same-origin' };
  expect(() => checkOrigin(from({ origin: 'https://x.example', ...seen }), localOnly)).toThrow();
  expect(() =>
    checkOrigin(from({ origin: 'http://localhost:5173', ...seen }), localOnly),
  ).not.toThrow();
});
