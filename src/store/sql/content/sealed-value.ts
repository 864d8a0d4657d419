import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { WaymarkError } from '../../../core/error.ts';
import { randomBytes } from '../../../core/platform.ts';
import type { SqlValue } from '../database/query.ts';
import { freeBytes, hexOf } from '../values/bytes.ts';

export interface ContentKey {
  readonly id: string;
  readonly secret: KeyObject;
}

/**
 * An encrypted value: version, key id, nonce, ciphertext, tag. Version 1 authenticates the head alone; version 2 the key,
 * the store and the place that the value was written to.
 */
const unbound = 1;
const bound = 2;
export const keyIdLength = 8;
const nonceLength = 12;
const tagLength = 16;
const headLength = 1 + keyIdLength + nonceLength;
const cipher = 'aes-256-gcm';
const options = { authTagLength: tagLength } as const;

// JSON text never begins with this, so encrypted text cannot be taken for content.
const textMark = '~';

export function encrypt(
  { id, secret }: ContentKey,
  content: string | Uint8Array,
  place: string,
): Uint8Array {
  const { nonce, body, tag } = seal(secret, content, boundTo(id, place));
  const sealed = Buffer.allocUnsafe(headLength + body.length + tagLength);
  sealed[0] = bound;
  sealed.write(id, 1, 'hex');
  sealed.set(nonce, 1 + keyIdLength);
  sealed.set(body, headLength);
  sealed.set(tag, headLength + body.length);
  freeBytes(body);
  return sealed;
}

function seal(secret: KeyObject, content: string | Uint8Array, additional: Buffer) {
  const nonce = nextNonce();
  const box = createCipheriv(cipher, secret, nonce, options).setAAD(additional);
  const body = typeof content === 'string' ? box.update(content, 'utf8') : box.update(content);
  // The cipher is a stream: nothing is left for the end but the tag.
  box.final();
  return { nonce, body, tag: box.getAuthTag() };
}

function boundTo(keyId: string, place: string): Buffer {
  return Buffer.from(`${keyId}\0${place}`);
}

// Asking the system for a few bytes at a time would take as long as the encryption.
const nonces = new Uint8Array(nonceLength * 256);
let noncesUsed = nonces.length;

function nextNonce(): Uint8Array {
  if (noncesUsed === nonces.length) {
    randomBytes(nonces);
    noncesUsed = 0;
  }
  noncesUsed += nonceLength;
  return nonces.slice(noncesUsed - nonceLength, noncesUsed);
}

/** The content of a value that was written to this place. */
export function decrypt({ id, secret }: ContentKey, sealed: Uint8Array, place: string): Buffer {
  const head = sealed.subarray(0, headLength);
  const additional = () => (isBound(sealed) ? boundTo(id, place) : head);
  return open(secret, sealed.subarray(1 + keyIdLength), additional, place);
}

/** The content behind a nonce and before a tag. */
function open(
  secret: KeyObject,
  sealed: Uint8Array,
  additional: () => Uint8Array,
  place: string,
): Buffer {
  try {
    const box = createDecipheriv(cipher, secret, sealed.subarray(0, nonceLength), options);
    box.setAAD(additional());
    box.setAuthTag(sealed.subarray(-tagLength));
    const content = box.update(sealed.subarray(nonceLength, -tagLength));
    // The cipher is a stream: nothing is left for the end but the check of the tag.
    box.final();
    return content;
  } catch (cause) {
    throw forged(place, cause);
  }
}

/** Whether a value is bound to its place; throws for a version that is not known here. */
export function isBound(sealed: Uint8Array): boolean {
  const [version = 0] = sealed;
  if (version === bound) return true;
  if (version === unbound) return false;
  throw new WaymarkError(
    'DATA_LOSS',
    `An encrypted value has version ${version}, which this version of waymark does not know: it was changed, or a newer version wrote it.`,
  );
}

export function keyIdOf(sealed: Uint8Array): string {
  return hexOf(sealed.subarray(1, 1 + keyIdLength));
}

/** As it stands in a column that takes bytes, or only text. */
export function pack(sealed: Uint8Array, form: 'binary' | 'text'): SqlValue {
  return form === 'binary' ? sealed : textMark + Buffer.from(sealed).toString('base64');
}

/** The encrypted value in a column; `undefined` when it is not encrypted. */
export function unpack(value: SqlValue): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (typeof value !== 'string' || !value.startsWith(textMark)) return undefined;
  return Buffer.from(value.slice(textMark.length), 'base64');
}

/** The error for a value that is not what was written to its place. */
export function forged(place: string, cause?: unknown): WaymarkError {
  const column = place.split('\0').find((part) => part.includes('.')) ?? 'a column';
  return new WaymarkError(
    'DATA_LOSS',
    `An encrypted value was changed: the value in ${column} was not written there by this store. Restore it from a backup.`,
    cause === undefined ? {} : { cause },
  );
}

/** Encrypts the 32 bytes of a hash, bound to its place: nonce, ciphertext, tag. */
export function encryptHash(secret: KeyObject, hash: Uint8Array, place: string): Uint8Array {
  const { nonce, body, tag } = seal(secret, hash, Buffer.from(place));
  return Buffer.concat([nonce, body, tag]);
}

export function decryptHash(secret: KeyObject, value: Uint8Array, place: string): Uint8Array {
  return open(secret, value, () => Buffer.from(place), place);
}
