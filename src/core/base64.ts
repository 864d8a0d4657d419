// More arguments than this may be too many for a call.
const maxArguments = 8192;

/** Bytes as a text with one character for each. */
export function toBinary(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += maxArguments) {
    text += String.fromCharCode(...bytes.subarray(at, at + maxArguments));
  }
  return text;
}

/** Bytes as Base64. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(toBinary(bytes));
}

/** The bytes of a Base64 text; `undefined` if it is none. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
