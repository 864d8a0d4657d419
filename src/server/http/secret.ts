import { WaymarkError } from '../../core/error.ts';
import { randomBytes } from '../../core/platform.ts';

const minBytes = 32;

/** A secret for one process. */
export function randomSecret(): string {
  return Array.from(randomBytes(new Uint8Array(32)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** Refuses secrets that protect nothing; `option` names where they come from. */
export function checkSecret(secret: string | readonly string[] | undefined, option: string): void {
  const secrets: readonly unknown[] = secret === undefined ? [randomSecret()] : [secret].flat();
  if (secrets.length > 0 && secrets.every(isStrong)) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `${option} must be a text of at least ${minBytes} bytes, or several. Is the environment variable it comes from set? \`openssl rand -base64 32\` makes one.`,
  );
}

function isStrong(secret: unknown): boolean {
  return typeof secret === 'string' && new TextEncoder().encode(secret).length >= minBytes;
}
