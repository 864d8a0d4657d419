import { randomBytes } from '../../../core/platform.ts';
import type { Vault } from '../content/vault.ts';
import { hexOf } from '../values/bytes.ts';
import { one, type Plan, run, type SqlValue, statement } from './query.ts';

const selectMeta = statement<{ id: string; sealed: SqlValue }>(
  'meta_read',
  'SELECT id, sealed FROM @meta',
);
const updateSealed = statement('meta_seal', 'UPDATE @meta SET sealed = $1');

/**
 * The database's name. An encrypted one also holds, sealed, the secret behind its content addresses: a wrong key, or a
 * missing one, shows here and not in the middle of a turn.
 */
export function* readMeta(vault: Vault): Plan<string> {
  const { id, sealed } = yield* one(selectMeta);
  if (sealed !== null) vault.setDigestSecret(JSON.parse(vault.open(sealed)) as string);
  else if (vault.keyId !== undefined) {
    const secret = hexOf(randomBytes(new Uint8Array(32)));
    yield* run(updateSealed, vault.seal(JSON.stringify(secret)));
    vault.setDigestSecret(secret);
  }
  return id;
}

/** Seals what stands in the table under the current key. */
export function* resealMeta(vault: Vault): Plan<void> {
  const { sealed } = yield* one(selectMeta);
  if (sealed !== null) yield* run(updateSealed, vault.seal(vault.open(sealed)));
}
