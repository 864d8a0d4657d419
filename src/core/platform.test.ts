import { describe, expect, test, vi } from 'vitest';
import {
  hmacSha256,
  randomBytes,
  requireOptional,
  sha256Hex,
  timingSafeEqual,
} from './platform.ts';

test('HMAC-SHA256 of RFC 4231, case 2, in all encodings', () => {
  const hex = hmacSha256('Jefe', 'what do ya want for nothing?');
  expect(hex).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
  const bytes = Buffer.from(hex, 'hex');
  expect(hmacSha256('Jefe', 'what do ya want for nothing?', 'base64url')).toBe(
    bytes.toString('base64url'),
  );
  expect(hmacSha256(Buffer.from('Jefe'), 'what do ya want for nothing?', 'base64')).toBe(
    bytes.toString('base64'),
  );
});

test('texts are compared whole', () => {
  expect(timingSafeEqual('abc', 'abc')).toBe(true);
  expect(timingSafeEqual('', '')).toBe(true);
  expect(timingSafeEqual('abc', 'abd')).toBe(false);
  expect(timingSafeEqual('abc', 'abcd')).toBe(false);
  expect(timingSafeEqual('é', 'e\u0301')).toBe(false);
});

test('random bytes are filled in', () => {
  const bytes = new Uint8Array(64);
  expect(randomBytes(bytes)).toBe(bytes);
  expect(bytes.some((byte) => byte !== 0)).toBe(true);
});

test('an optional package is loaded if it is there', () => {
  expect(requireOptional('rfc6902')).toHaveProperty('applyPatch');
  expect(requireOptional('waymark-no-such-package')).toBeUndefined();
});

describe('without Node', () => {
  async function elsewhere(): Promise<typeof import('./platform.ts')> {
    vi.resetModules();
    vi.stubGlobal('process', undefined);
    try {
      return await import('./platform.ts');
    } finally {
      vi.unstubAllGlobals();
    }
  }

  test('what can be had works, and what cannot says so', async () => {
    const platform = await elsewhere();
    vi.stubGlobal('process', undefined);
    expect(platform.timingSafeEqual('abc', 'abc')).toBe(true);
    expect(platform.timingSafeEqual('abc', 'abd')).toBe(false);
    expect(platform.randomBytes(new Uint8Array(4))).toHaveLength(4);
    for (const text of ['', 'x', 'ä漢🎒', 'a\ud800b', 'long'.repeat(1000)]) {
      expect(platform.sha256Hex(text)).toBe(sha256Hex(text));
      for (const encoding of ['hex', 'base64', 'base64url'] as const) {
        expect(platform.hmacSha256('key', text, encoding)).toBe(hmacSha256('key', text, encoding));
      }
    }
    vi.unstubAllGlobals();
    expect(sha256Hex('x')).toHaveLength(64);
  });

  test('a context is seen in the synchronous part', async () => {
    const platform = await elsewhere();
    vi.stubGlobal('process', undefined);
    const context = platform.createContextKey<number>('n');
    expect(platform.requireOptional('rfc6902')).toBeUndefined();
    vi.unstubAllGlobals();
    context.run(1, () => {
      expect(context.get()).toBe(1);
      expect(() =>
        context.run(2, () => {
          throw new Error('x');
        }),
      ).toThrow('x');
      expect(context.get()).toBe(1);
    });
    expect(context.get()).toBeUndefined();
  });
});
