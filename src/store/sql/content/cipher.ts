import { createHash, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { invalid, type WaymarkError } from '../../../core/error.ts';
import { packedMark } from '../../../core/json/packed-text.ts';
import { storeFault } from '../../rules/errors.ts';
import type { SqlValue } from '../database/query.ts';
import { fromHex, hashBytes, hexOf } from '../values/bytes.ts';
import {
  type ContentKey,
  decrypt,
  decryptHash,
  encrypt,
  encryptHash,
  forged,
  isBound,
  keyIdLength,
  keyIdOf,
  pack,
  unpack,
} from './sealed-value.ts';

/** 32 bytes, as such or as text in base64 or hexadecimal. */
type EncryptionKey = Uint8Array | string;

/**
 * Encryption of stored content. `key` encrypts and decrypts; with `keys` the first one encrypts, and all of them decrypt, so
 * that content under an old key stays readable until `rotateKeys` has encrypted it again.
 */
export type Encryption =
  | { readonly key: EncryptionKey }
  | { readonly keys: readonly [EncryptionKey, ...EncryptionKey[]] };

/** The part of a store's settings that its encryption needs, itself encrypted under the key. */
export interface StoreSecret {
  /** Behind content addresses and hashes of states: the store's own, so that they outlive the keys. */
  readonly secret: string;
  /** Everything is encrypted and bound to its place: anything else was not written by this store. */
  readonly strict: boolean;
}

/** The kinds of documents that have a content address. */
type DocumentKind =
  | 'custom'
  | 'artifacts'
  | 'part'
  | 'chunk'
  | 'chunks'
  | 'file'
  | 'piece'
  | 'node';

/** How content stands in its columns: as JSON text, or encrypted and bound to its place. */
export interface Cipher {
  /** JSON text as it is stored in a place. */
  encrypt(text: string, place: string): SqlValue;
  /** The JSON text that was stored in a place. */
  decrypt(value: SqlValue, place: string): string;
  /** A packed text as it is stored in a place. */
  encryptBytes(packed: Uint8Array, place: string): Uint8Array;
  /** The packed text that was stored in a place. */
  decryptBytes(value: Uint8Array, place: string): Uint8Array;
  /** The hash of a state as it is stored. Under encryption it is hidden, and bound to its snapshot. */
  sealHash(hash: string, place: string): Uint8Array;
  openHash(value: Uint8Array, place: string): string;
  /** The content address of a stored document. With encryption it is keyed, so that it cannot confirm a guess of the content. */
  digest(kind: DocumentKind, text: string): Uint8Array;
  /** Whether a stored value, packed text, or hash, is as it would be written now. */
  isCurrent(value: SqlValue): boolean;
  isCurrentBytes(value: Uint8Array): boolean;
  isCurrentHash(value: Uint8Array): boolean;
  /** Names the key that encrypts; `undefined` when nothing is encrypted. */
  readonly keyId: string | undefined;
  /** Takes in what is known once the database is open. */
  setStore(id: string, kept: StoreSecret | undefined): void;
}

/** A cipher for a database that takes bytes in any column (`binary`), or only text. */
export function createCipher(encryption: Encryption | undefined, form: 'binary' | 'text'): Cipher {
  if (encryption === undefined) return openVault;
  const given = 'key' in encryption ? [encryption.key] : encryption.keys;
  const keys = new Map(given.map(toKey).map((key) => [key.id, key]));
  const [current] = keys.values();
  if (current === undefined) throw badKey();
  let store = '';
  let isStrict = false;
  let digestSecret = '';
  let hashKey: KeyObject | undefined;
  const inStore = (place: string): string => `${store}\0${place}`;
  const refusePlain = (place: string): void => {
    if (isStrict) throw forged(place);
  };
  const keyOf = (sealed: Uint8Array): ContentKey => {
    const key = keys.get(keyIdOf(sealed));
    if (key === undefined) throw wrongKey(keyIdOf(sealed), [...keys.keys()]);
    return key;
  };
  const keyOfHashes = (): KeyObject => {
    hashKey ??= deriveKey(Buffer.from(digestSecret), 'state hash');
    return hashKey;
  };
  return {
    keyId: current.id,
    encrypt: (text, place) => pack(encrypt(current, text, inStore(place)), form),
    decrypt(value, place) {
      const sealed = unpack(value);
      if (sealed === undefined || !isBound(sealed)) refusePlain(place);
      if (sealed === undefined) return String(value);
      return decrypt(keyOf(sealed), sealed, inStore(place)).toString('utf8');
    },
    encryptBytes: (packed, place) => encrypt(current, packed, inStore(place)),
    decryptBytes(value, place) {
      if (!isPlain(value)) return decrypt(keyOf(value), value, inStore(place));
      refusePlain(place);
      return value;
    },
    sealHash: (hash, place) => encryptHash(keyOfHashes(), fromHex(hash), inStore(place)),
    openHash(value, place) {
      if (value.length !== plainHashLength) {
        return hexOf(decryptHash(keyOfHashes(), value, inStore(place)));
      }
      refusePlain(place);
      return hexOf(value);
    },
    digest: (kind, text) => createHmac('sha256', digestSecret).update(`${kind}\n${text}`).digest(),
    isCurrent(value) {
      const sealed = unpack(value);
      return sealed !== undefined && isBound(sealed) && keyIdOf(sealed) === current.id;
    },
    isCurrentBytes: (value) => !isPlain(value) && keyIdOf(value) === current.id,
    isCurrentHash: (value) => value.length !== plainHashLength,
    setStore(id, kept) {
      store = id;
      isStrict = kept?.strict ?? false;
      digestSecret = kept?.secret ?? '';
      hashKey = undefined;
    },
  };
}

/** No encryption: values are stored as they are. */
const openVault: Cipher = {
  keyId: undefined,
  encrypt: (text) => text,
  decrypt(value) {
    if (unpack(value) === undefined) return String(value);
    throw noKey();
  },
  encryptBytes: (packed) => packed,
  decryptBytes(value) {
    if (isPlain(value)) return value;
    throw noKey();
  },
  sealHash: hashBytes,
  openHash(value) {
    if (value.length === plainHashLength) return hexOf(value);
    throw noKey();
  },
  digest: (kind, text) => createHash('sha256').update(`${kind}\n${text}`).digest(),
  isCurrent: (value) => unpack(value) === undefined,
  isCurrentBytes: isPlain,
  isCurrentHash: (value) => value.length === plainHashLength,
  setStore() {},
};

/** Whether a packed text is not encrypted: versions of encrypted values are below its mark. */
function isPlain([first = packedMark]: Uint8Array): boolean {
  return first >= packedMark;
}

function toKey(given: EncryptionKey): ContentKey {
  const raw = typeof given === 'string' ? fromText(given) : given;
  if (raw.length !== 32) throw badKey();
  return {
    id: hexOf(derive(raw, 'key id', keyIdLength)),
    secret: deriveKey(raw, 'content'),
  };
}

/** An object, not bytes: a cipher that is given bytes takes longer to import them than to encrypt a message. */
function deriveKey(from: Uint8Array, use: string): KeyObject {
  return createSecretKey(derive(from, use, 32));
}

function derive(from: Uint8Array, use: string, length: number): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', from, '', `waymark ${use}`, length));
}

function fromText(text: string): Uint8Array {
  return /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
}

const plainHashLength = 32;
function badKey(): WaymarkError {
  return invalid(
    'An encryption key must be 32 bytes: a Uint8Array, or text in base64 or hexadecimal. Make one with crypto.randomBytes(32).',
  );
}

function noKey(): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    'This store is encrypted. Give its key with the option "encryption".',
  );
}

/** The error for content under a key that was not given. */
function wrongKey(sealedUnder: string, given: readonly string[]): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    `This store holds content encrypted under key ${sealedUnder}, which is not among the given ones (${given.join(', ') || 'none'}). Add that key to "encryption.keys".`,
  );
}
