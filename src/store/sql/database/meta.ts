import { randomBytes } from '../../../core/platform.ts';
import type { Cipher, StoreSecret } from '../content/cipher.ts';
import { metaPlace } from '../content/places.ts';
import { hexOf } from '../values/bytes.ts';
import { one, type Plan, run, type SqlValue, statement } from './query.ts';

const selectMeta = statement<{ id: string; sealed: SqlValue; used: number }>(
  'meta_read',
  `SELECT id, sealed, CASE WHEN EXISTS (SELECT 1 FROM @sessions) THEN 1 ELSE 0 END AS used FROM @meta`,
);
// Two processes may open a new store at once: the first secret stands.
const insertSealed = statement('meta_make', 'UPDATE @meta SET sealed = $1 WHERE sealed IS NULL');
const updateSealed = statement('meta_seal', 'UPDATE @meta SET sealed = $1');

/**
 * The database's name. An encrypted one also holds, encrypted, the secret behind its content addresses and hashes: a wrong
 * key, or a missing one, shows here and not in the middle of a turn. `undefined` when it must get a secret first: see {@link makeSecret}.
 */
export function* readMeta(cipher: Cipher): Plan<string | undefined> {
  const { id, sealed } = yield* one(selectMeta);
  cipher.setStore(id, undefined);
  if (sealed === null) return cipher.keyId === undefined ? id : undefined;
  cipher.setStore(id, fromSealed(sealed, cipher));
  return id;
}

/** Gives a database that is encrypted from now on its secret. */
export function* makeSecret(cipher: Cipher): Plan<void> {
  const { used } = yield* one(selectMeta);
  const secret = hexOf(randomBytes(new Uint8Array(32)));
  // Content that was written before there was a key is not encrypted yet.
  yield* run(insertSealed, toSealed({ secret, strict: used === 0 }, cipher));
}

/** Encrypts what stands in the table under the current key; from then on nothing that is not encrypted is accepted. */
export function* resealMeta(cipher: Cipher): Plan<void> {
  const { id, sealed } = yield* one(selectMeta);
  if (sealed === null) return;
  const kept = { ...fromSealed(sealed, cipher), strict: true };
  yield* run(updateSealed, toSealed(kept, cipher));
  cipher.setStore(id, kept);
}

function toSealed({ secret, strict }: StoreSecret, cipher: Cipher): SqlValue {
  return cipher.encrypt(JSON.stringify({ secret, strict }), metaPlace);
}

// Before values were bound to their places, the secret stood there alone.
function fromSealed(sealed: SqlValue, cipher: Cipher): StoreSecret {
  const kept = JSON.parse(cipher.decrypt(sealed, metaPlace)) as string | StoreSecret;
  return typeof kept === 'string' ? { secret: kept, strict: false } : kept;
}
