/** The 16 bytes of a UUID. */
export function uuidBytes(id: string): Uint8Array {
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

/** The text of a UUID's 16 bytes. */
export function uuidText(bytes: Uint8Array): string {
  return uuidFromHex(hexOf(bytes));
}

/** The text of a UUID from its 32 digits. */
export function uuidFromHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Bytes as hexadecimal text. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Hexadecimal text as bytes. */
export function fromHex(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex');
}

/** Milliseconds as ISO 8601. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}
