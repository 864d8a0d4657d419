import { sha256Hex } from '../platform.ts';
import { hashToken, setHashToken } from './frozen-json.ts';
import { canonicalText, type Json, toJson } from './json.ts';

/** SHA-256 of a text's UTF-8 bytes, in lower-case hex. */
export function sha256(text: string): string {
  return sha256Hex(text);
}

// A container whose text is longer than this stands in its parent as its hash.
const inlineLimit = 256;

/**
 * The content address of a JSON value: SHA-256 in hex over its canonical JSON, in which every nested object or array whose
 * own such text is longer than 256 UTF-16 code units is replaced by `#` and the hex SHA-256 of that text. What was hashed
 * before is remembered, so that a small change in a large frozen document costs little.
 */
export function contentHash(value: Json): string {
  const token = tokenOf(toJson(value, 'The value to hash'));
  return token.startsWith('#') ? token.slice(1) : sha256Hex(token);
}

// Texts of JSON never begin with `#`, so a hash cannot be taken for a value.
function tokenOf(value: Json): string {
  if (typeof value !== 'object' || value === null) return canonicalText(value);
  const known = hashToken(value);
  if (known !== undefined) return known;
  const text = canonicalText(value, tokenOf);
  const token = text.length > inlineLimit ? `#${sha256Hex(text)}` : text;
  setHashToken(value, token);
  return token;
}
