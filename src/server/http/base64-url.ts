/** Bytes that are turned into characters at a time: the arguments of a call are limited. */
const pieceLength = 8192;

/** A text as base64url, which needs no escaping in JSON, headers and URLs. */
export function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  for (let at = 0; at < bytes.length; at += pieceLength) {
    binary += String.fromCharCode(...bytes.subarray(at, at + pieceLength));
  }
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The text of a base64url; throws if it is none. */
export function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return new TextDecoder().decode(bytes);
}
