import { expect, test } from 'vitest';
import { signWebhook, verifyWebhook } from './sign.ts';

// The example of the Standard Webhooks specification.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const example = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
};
const other = `whsec_${btoa('another secret of this length')}`;
const now = example.timestamp * 1000;

test('signs as Standard Webhooks does', () => {
  expect(signWebhook(example, secret)).toEqual({
    'webhook-id': example.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('a receiver with either secret accepts what both have signed', () => {
  const headers = new Headers(signWebhook(example, [other, secret]));
  for (const known of [other, secret, [other, secret]]) {
    expect(verifyWebhook(example.body, headers, { secret: known, now })).toEqual({
      id: example.id,
      timestamp: example.timestamp,
    });
  }
});

test.each([
  ['another body', { body: '{"test": 1}' }],
  ['another id', { headers: { 'webhook-id': 'msg_other' } }],
  ['another secret', { secret: other }],
  ['an old timestamp', { now: now + 300_001 }],
  ['a timestamp of the future', { now: now - 300_001 }],
  ['a timestamp that is no number', { headers: { 'webhook-timestamp': '1614265330x' } }],
  ['another timestamp', { headers: { 'webhook-timestamp': '1614265331' } }],
  ['no signature', { headers: { 'webhook-signature': undefined } }],
  ['an empty signature', { headers: { 'webhook-signature': 'v1,' } }],
])('refuses %s', (_, change: object) => {
  const {
    body = example.body,
    headers,
    ...options
  } = change as { body?: string; headers?: object };
  const sent = { ...signWebhook(example, secret), ...headers };
  expect(() => verifyWebhook(body, sent, { secret, now, ...options })).toThrow(
    'The webhook is not genuine.',
  );
});

test.each(['', 'secret', 'whsec_', 'whsec_c2hvcnQ=', 'whsec_not base64', []])(
  'refuses the secret %j',
  (bad) => {
    expect(() => signWebhook(example, bad)).toThrow('openssl rand -base64 32');
  },
);
