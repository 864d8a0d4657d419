import { toBase64 } from '../../core/base64.ts';
import { invalid } from '../../core/error.ts';
import { randomBytes } from '../../core/platform.ts';

const minBytes = 32;

export function randomSecret(): string {
  return toBase64(randomBytes(new Uint8Array(32)));
}

/** Refuses secrets that protect nothing; `option` names where they come from. */
export function checkSecret(secret: string | readonly string[] | undefined, option: string): void {
  const secrets: readonly unknown[] = secret === undefined ? [randomSecret()] : [secret].flat();
  if (secrets.length > 0 && secrets.every(isStrong)) return;
  throw invalid(
    `${option} must be a text of at least ${minBytes} bytes, or several. Is the environment variable it comes from set? \`openssl rand -base64 32\` makes one.`,
  );
}

function isStrong(secret: unknown): boolean {
  return typeof secret === 'string' && new TextEncoder().encode(secret).length >= minBytes;
}

/** A text as base64url, which needs no escaping in JSON, headers and URLs. */
export function toBase64Url(text: string): string {
  const base64 = toBase64(new TextEncoder().encode(text));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The text of a base64url; throws if it is none. */
export function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'));
  return new TextDecoder().decode(Uint8Array.from(binary, (each) => each.charCodeAt(0)));
}
