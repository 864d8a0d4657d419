import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import { WaymarkError } from '../../../core/error.ts';
import { randomBytes } from '../../../core/platform.ts';
import type { SqlValue } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';

/** 32 bytes, as such or as text in base64 or hexadecimal. */
export type EncryptionKey = Uint8Array | string;

/**
 * Encryption of stored content. `key` seals and opens; with `keys` the first one seals, and all of them open, so that what
 * was sealed under an old key stays readable until `rotateKeys` has sealed it again.
 */
export type Encryption =
  | { readonly key: EncryptionKey }
  | { readonly keys: readonly [EncryptionKey, ...EncryptionKey[]] };

/** How content stands in its columns: as JSON text, or sealed. */
export interface Vault {
  /** JSON text as it is stored. */
  seal(text: string): SqlValue;
  /** The JSON text of a stored value. */
  open(value: SqlValue): string;
  /** The content address of a stored document. Under encryption it is keyed, so that nobody can test a guess with it. */
  digest(kind: 'custom' | 'artifacts' | 'part', text: string): Uint8Array;
  /** Whether a stored value is as `seal` would make it now. */
  isCurrent(value: SqlValue): boolean;
  /** Names the key that seals; `undefined` when nothing is sealed. */
  readonly keyId: string | undefined;
  /** The secret behind `digest`: the store's own, kept sealed in it, so that addresses outlive the keys. */
  setDigestSecret(secret: string): void;
}

/** A vault for a database that takes bytes in any column (`binary`), or only text. */
export function createVault(encryption: Encryption | undefined, form: 'binary' | 'text'): Vault {
  if (encryption === undefined) return openVault;
  const given = 'key' in encryption ? [encryption.key] : encryption.keys;
  const keys = new Map(given.map(toKey).map((key) => [key.id, key]));
  const [current] = keys.values();
  if (current === undefined) throw badKey();
  let digestSecret = '';
  return {
    keyId: current.id,
    seal: (text) => pack(encrypt(current, text), form),
    open(value) {
      const sealed = unpack(value);
      return sealed === undefined ? String(value) : decrypt(keys, sealed);
    },
    digest: (kind, text) => createHmac('sha256', digestSecret).update(`${kind}\n${text}`).digest(),
    setDigestSecret(secret) {
      digestSecret = secret;
    },
    isCurrent(value) {
      const sealed = unpack(value);
      return sealed !== undefined && keyIdOf(sealed) === current.id;
    },
  };
}

/** Everything as it is. */
const openVault: Vault = {
  keyId: undefined,
  seal: (text) => text,
  open(value) {
    if (unpack(value) === undefined) return String(value);
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'This store is encrypted. Give its key with the option "encryption".',
    );
  },
  digest: (kind, text) => createHash('sha256').update(`${kind}\n${text}`).digest(),
  isCurrent: (value) => unpack(value) === undefined,
  setDigestSecret() {},
};

interface Key {
  readonly id: string;
  readonly secret: Uint8Array;
}

function toKey(given: EncryptionKey): Key {
  const raw = typeof given === 'string' ? fromText(given) : given;
  if (raw.length !== 32) throw badKey();
  const derive = (use: string, length: number): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', raw, '', `waymark ${use}`, length));
  return {
    id: hexOf(derive('key id', keyIdLength)),
    secret: derive('content', 32),
  };
}

function fromText(text: string): Uint8Array {
  return /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
}

function badKey(): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    'An encryption key must be 32 bytes: a Uint8Array, or text in base64 or hexadecimal. Make one with crypto.randomBytes(32).',
  );
}

// A sealed value: version, key id, nonce, ciphertext, tag.
const version = 1;
const keyIdLength = 8;
const nonceLength = 12;
const tagLength = 16;
const headLength = 1 + keyIdLength + nonceLength;
const cipher = 'aes-256-gcm';

// JSON text never begins with this, so sealed text cannot be taken for content.
const sealedMark = '~';

function encrypt({ id, secret }: Key, text: string): Uint8Array {
  const nonce = randomBytes(new Uint8Array(nonceLength));
  const head = Buffer.concat([Uint8Array.of(version), Buffer.from(id, 'hex'), nonce]);
  const box = createCipheriv(cipher, secret, nonce, { authTagLength: tagLength }).setAAD(head);
  return Buffer.concat([head, box.update(text, 'utf8'), box.final(), box.getAuthTag()]);
}

function decrypt(keys: ReadonlyMap<string, Key>, sealed: Uint8Array): string {
  const key = keys.get(keyIdOf(sealed));
  if (key === undefined) throw wrongKey(keyIdOf(sealed), [...keys.keys()]);
  const head = sealed.subarray(0, headLength);
  const nonce = sealed.subarray(1 + keyIdLength, headLength);
  const box = createDecipheriv(cipher, key.secret, nonce, { authTagLength: tagLength });
  box.setAAD(head).setAuthTag(sealed.subarray(-tagLength));
  try {
    const text = box.update(sealed.subarray(headLength, -tagLength));
    return Buffer.concat([text, box.final()]).toString('utf8');
  } catch (cause) {
    throw new WaymarkError(
      'DATA_LOSS',
      'A sealed value was changed: it does not open with its key.',
      { cause },
    );
  }
}

function keyIdOf(sealed: Uint8Array): string {
  return hexOf(sealed.subarray(1, 1 + keyIdLength));
}

/** The error for content under a key that was not given. */
function wrongKey(sealedUnder: string, given: readonly string[]): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `This store holds content sealed under key ${sealedUnder}, which is not among the given ones (${given.join(', ') || 'none'}). Add that key to "encryption.keys".`,
  );
}

function pack(sealed: Uint8Array, form: 'binary' | 'text'): SqlValue {
  if (form === 'binary') return sealed;
  return sealedMark + Buffer.from(sealed).toString('base64');
}

function unpack(value: SqlValue): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (typeof value !== 'string' || !value.startsWith(sealedMark)) return undefined;
  return Buffer.from(value.slice(sealedMark.length), 'base64');
}
