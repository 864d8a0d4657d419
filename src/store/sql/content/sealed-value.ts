import { createCipheriv, createDecipheriv } from 'node:crypto';
import { WaymarkError } from '../../../core/error.ts';
import { randomBytes } from '../../../core/platform.ts';
import type { SqlValue } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';

/** A key for content, and its name. */
export interface ContentKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

/**
 * An encrypted value: version, key id, nonce, ciphertext, tag. Version 1 authenticates the head alone; version 2 also the
 * store and the place that the value was written to.
 */
const unbound = 1;
const bound = 2;
export const keyIdLength = 8;
const nonceLength = 12;
const tagLength = 16;
const headLength = 1 + keyIdLength + nonceLength;
const cipher = 'aes-256-gcm';

// JSON text never begins with this, so encrypted text cannot be taken for content.
const textMark = '~';

export function encrypt({ id, secret }: ContentKey, text: string, place: string): Uint8Array {
  const nonce = randomBytes(new Uint8Array(nonceLength));
  const head = Buffer.concat([Uint8Array.of(bound), Buffer.from(id, 'hex'), nonce]);
  const box = createCipheriv(cipher, secret, nonce, { authTagLength: tagLength });
  box.setAAD(Buffer.concat([head, Buffer.from(place)]));
  return Buffer.concat([head, box.update(text, 'utf8'), box.final(), box.getAuthTag()]);
}

/** The text of a value that was written to this place. */
export function decrypt({ secret }: ContentKey, sealed: Uint8Array, place: string): string {
  const head = sealed.subarray(0, headLength);
  const nonce = sealed.subarray(1 + keyIdLength, headLength);
  try {
    const box = createDecipheriv(cipher, secret, nonce, { authTagLength: tagLength });
    box.setAAD(isBound(sealed) ? Buffer.concat([head, Buffer.from(place)]) : head);
    box.setAuthTag(sealed.subarray(-tagLength));
    const text = box.update(sealed.subarray(headLength, -tagLength));
    return Buffer.concat([text, box.final()]).toString('utf8');
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
  const column = place.split('\0', 1)[0];
  return new WaymarkError(
    'DATA_LOSS',
    `An encrypted value was changed: what stands in ${column} was not written there by this store. Restore it from a backup.`,
    cause === undefined ? {} : { cause },
  );
}
