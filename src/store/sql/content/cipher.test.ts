import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createVault } from './cipher.ts';

const key = new Uint8Array(32).fill(1);
const other = new Uint8Array(32).fill(2);
const place = 'messages.body';

describe.each(['binary', 'text'] as const)('sealed as %s', (form) => {
  test('any text opens as it was, and its seal tells nothing of it', () => {
    const vault = createVault({ key }, form);
    fc.assert(
      fc.property(fc.json(), (text) => {
        const sealed = vault.seal(text, place);
        expect(vault.open(sealed, place)).toBe(text);
        // Twice the same text is never twice the same seal.
        expect(vault.seal(text, place)).not.toEqual(sealed);
      }),
    );
  });

  test('an old key opens, the new one seals, and what is current is known', () => {
    const before = createVault({ key: other }, form).seal('"old"', place);
    const vault = createVault({ keys: [key, other] }, form);
    expect(vault.open(before, place)).toBe('"old"');
    expect([vault.isCurrent(before), vault.isCurrent(vault.seal('"new"', place))]).toEqual([
      false,
      true,
    ]);
  });

  test('a key that was not given is named', () => {
    const sealed = createVault({ key: other }, form).seal('""', place);
    expect(() => createVault({ key }, form).open(sealed, place)).toThrow(
      /not among the given ones/,
    );
    expect(() => createVault(undefined, form).open(sealed, place)).toThrow(
      /encrypted. Give its key/,
    );
  });

  test('what was not sealed yet is read as it is', () => {
    expect(createVault({ key }, form).open('{"a":1}', place)).toBe('{"a":1}');
  });
});

test('a changed byte anywhere is DATA_LOSS, or a key that nobody knows', () => {
  const vault = createVault({ key }, 'binary');
  const sealed = vault.seal('{"a":1}', place) as Uint8Array;
  for (let at = 0; at < sealed.length; at++) {
    const changed = Uint8Array.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => vault.open(changed, place), `byte ${at}`).toThrow(
      /was changed|not among the given|does not know/,
    );
  }
});

test('a key is 32 bytes, as such, in base64 or in hexadecimal', () => {
  const text = Buffer.from(key);
  const ids = [key, text.toString('hex'), text.toString('base64')].map(
    (each) => createVault({ key: each }, 'text').keyId,
  );
  expect(new Set(ids).size).toBe(1);
  for (const bad of ['', 'short', new Uint8Array(31)]) {
    expect(() => createVault({ key: bad }, 'text')).toThrow(/must be 32 bytes/);
  }
});

test('addresses of content need the secret of the store once it is sealed', () => {
  const [a, b] = [createVault({ key }, 'text'), createVault({ key: other }, 'text')];
  for (const vault of [a, b]) vault.setStore('id', { secret: 'of the store', strict: true });
  // They outlive the keys.
  expect(a.digest('custom', '{}')).toEqual(b.digest('custom', '{}'));
  expect(a.digest('custom', '{}')).not.toEqual(
    createVault(undefined, 'text').digest('custom', '{}'),
  );
  expect(a.digest('custom', '{}')).not.toEqual(a.digest('part', '{}'));
});
