import { randomBytes } from '../../../core/platform.ts';
import type { Driver } from '../database/driver.ts';
import { one, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import type { Cipher, StoreSecret } from './cipher.ts';
import { metaPlace } from './places.ts';

/** A driver whose calls open the database first. */
export interface OpenedDriver extends Driver {
  /** A random name that the database got when it was created. Only read once it is open. */
  readonly id: string;
  readonly forMaintenance?: OpenedDriver;
}

/** Opens a database at the first call, and gives the cipher what it has to know of it. */
export function openedDriver(driver: Driver, cipher: Cipher): OpenedDriver {
  let id = '';
  let opening: Promise<void> | undefined;
  let isOpen = false;
  const prepare = async (): Promise<void> => {
    await driver.open();
    let found = await driver.read(() => readMeta(cipher));
    if (found === undefined) {
      await driver.write(() => makeSecret(cipher));
      found = await driver.read(() => readMeta(cipher));
    }
    id = found ?? '';
    isOpen = true;
  };
  const open = (): Promise<void> => {
    opening ??= prepare().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  /** Every turn comes through here several times, and needs no promise for that. */
  const once = <Result>(work: () => Promise<Result>): Promise<Result> =>
    isOpen ? work() : open().then(work);
  const over = (own: Driver): OpenedDriver => ({
    dialect: own.dialect,
    isLocal: own.isLocal === true,
    transactional: own.transactional === true,
    checksAside: own.checksAside === true,
    get id() {
      return id;
    },
    open,
    read: (plan) => once(() => own.read(plan)),
    write: (plan, options) => once(() => own.write(plan, options)),
    async check(signal) {
      await open();
      return (await own.check?.(signal)) ?? [];
    },
    async scrub() {
      await open();
      await own.scrub?.();
    },
    tell: (hints, reach) => own.tell(hints, reach),
    listen: (hint, listener) => own.listen(hint, listener),
    close: () => own.close(),
    ...(own.forMaintenance && { forMaintenance: over(own.forMaintenance) }),
  });
  return over(driver);
}

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
function* readMeta(cipher: Cipher): Plan<string | undefined> {
  const { id, sealed } = yield* one(selectMeta);
  cipher.setStore(id, undefined);
  if (sealed === null) return cipher.keyId === undefined ? id : undefined;
  cipher.setStore(id, fromSealed(sealed, cipher));
  return id;
}

/** Gives a database that is encrypted from now on its secret. */
function* makeSecret(cipher: Cipher): Plan<void> {
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
