/** The value of each hexadecimal digit by its character code; -1 for other characters. */
const digits = new Int8Array(128).fill(-1);
for (const character of '0123456789abcdefABCDEF') {
  digits[character.charCodeAt(0)] = Number.parseInt(character, 16);
}
const dash = '-'.charCodeAt(0);

/** The 16 bytes of a UUID; none for any other text. */
export function uuidBytes(id: string): Uint8Array {
  return parse(id, 16);
}

/** The 32 bytes of a SHA-256 hash in hexadecimal text; none for any other text. */
export function hashBytes(hash: string): Uint8Array {
  return parse(hash, 32);
}

// Digit by digit: a turn does this several times, and a buffer made from text takes three times as long.
function parse(text: string, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === dash) continue;
    const digit = digits[character] ?? -1;
    if (digit < 0) return new Uint8Array();
    bytes[count >> 1] = ((bytes[count >> 1] ?? 0) << 4) | digit;
    count++;
  }
  return count === 2 * length ? bytes : new Uint8Array();
}

/** The text of a UUID's 16 bytes. */
export function uuidText(bytes: Uint8Array): string {
  return uuidFromHex(hexOf(bytes));
}

/** The text of a UUID from its 32 digits. */
export function uuidFromHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

export function fromHex(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex');
}

/** Milliseconds as ISO 8601. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}

/** Smaller ones are not worth it, or share their memory. */
const minFreed = 16_384;

/**
 * Gives the memory of bytes back at once that nothing else uses: V8 lets tens of megabytes of them pile up before it collects them. They are
 * empty after that.
 */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  if (!(buffer instanceof ArrayBuffer) || byteLength < minFreed) return;
  if (buffer.byteLength === byteLength) buffer.transfer(0);
}
