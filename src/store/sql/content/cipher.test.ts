import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCipher } from './cipher.ts';

const key = new Uint8Array(32).fill(1);
const other = new Uint8Array(32).fill(2);
const place = 'messages.body';

describe.each(['binary', 'text'] as const)('sealed as %s', (form) => {
  test('any text opens as it was, and its seal tells nothing of it', () => {
    const cipher = createCipher({ key }, form);
    fc.assert(
      fc.property(fc.json(), (text) => {
        const sealed = cipher.encrypt(text, place);
        expect(cipher.decrypt(sealed, place)).toBe(text);
        // Twice the same text is never twice the same seal.
        expect(cipher.encrypt(text, place)).not.toEqual(sealed);
      }),
    );
  });

  test('an old key opens, the new one seals, and what is current is known', () => {
    const before = createCipher({ key: other }, form).encrypt('"old"', place);
    const cipher = createCipher({ keys: [key, other] }, form);
    expect(cipher.decrypt(before, place)).toBe('"old"');
    expect([cipher.isCurrent(before), cipher.isCurrent(cipher.encrypt('"new"', place))]).toEqual([
      false,
      true,
    ]);
  });

  test('a key that was not given is named', () => {
    const sealed = createCipher({ key: other }, form).encrypt('""', place);
    expect(() => createCipher({ key }, form).decrypt(sealed, place)).toThrow(
      /not among the given ones/,
    );
    expect(() => createCipher(undefined, form).decrypt(sealed, place)).toThrow(
      /encrypted. Give its key/,
    );
  });

  test('what was not sealed yet is read as it is', () => {
    expect(createCipher({ key }, form).decrypt('{"a":1}', place)).toBe('{"a":1}');
  });
});

test('a changed byte anywhere is DATA_LOSS, or an unknown key', () => {
  const cipher = createCipher({ key }, 'binary');
  const sealed = cipher.encrypt('{"a":1}', place) as Uint8Array;
  for (let at = 0; at < sealed.length; at++) {
    const changed = Uint8Array.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => cipher.decrypt(changed, place), `byte ${at}`).toThrow(
      /was changed|not among the given|does not know/,
    );
  }
});

test('a key is 32 bytes, as such, in base64 or in hexadecimal', () => {
  const text = Buffer.from(key);
  const ids = [key, text.toString('hex'), text.toString('base64')].map(
    (each) => createCipher({ key: each }, 'text').keyId,
  );
  expect(new Set(ids).size).toBe(1);
  for (const bad of ['', 'short', new Uint8Array(31)]) {
    expect(() => createCipher({ key: bad }, 'text')).toThrow(/must be 32 bytes/);
  }
});

test('addresses of content need the secret of the store once it is sealed', () => {
  const [a, b] = [createCipher({ key }, 'text'), createCipher({ key: other }, 'text')];
  for (const cipher of [a, b]) cipher.setStore('id', { secret: 'of the store', strict: true });
  // They outlive the keys.
  expect(a.digest('custom', '{}')).toEqual(b.digest('custom', '{}'));
  expect(a.digest('custom', '{}')).not.toEqual(
    createCipher(undefined, 'text').digest('custom', '{}'),
  );
  expect(a.digest('custom', '{}')).not.toEqual(a.digest('part', '{}'));
});
