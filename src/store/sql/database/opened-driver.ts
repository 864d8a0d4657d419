import type { Cipher } from '../content/cipher.ts';
import type { Driver } from './driver.ts';
import { makeSecret, readMeta } from './meta.ts';

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
  const prepare = async (): Promise<void> => {
    await driver.open();
    let found = await driver.read(() => readMeta(cipher));
    if (found === undefined) {
      await driver.write(() => makeSecret(cipher));
      found = await driver.read(() => readMeta(cipher));
    }
    id = found ?? '';
  };
  const open = (): Promise<void> => {
    opening ??= prepare().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  const over = (own: Driver): OpenedDriver => ({
    dialect: own.dialect,
    isLocal: own.isLocal === true,
    transactional: own.transactional === true,
    checksAside: own.checksAside === true,
    get id() {
      return id;
    },
    open,
    async read(plan) {
      await open();
      return await own.read(plan);
    },
    async write(plan, options) {
      await open();
      return await own.write(plan, options);
    },
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
  });
  const { forMaintenance } = driver;
  const opened = over(driver);
  if (forMaintenance === undefined) return opened;
  return Object.defineProperty(opened, 'forMaintenance', { value: over(forMaintenance) });
}
