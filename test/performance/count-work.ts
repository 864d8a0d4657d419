import { createRequire } from 'node:module';

const crypto: typeof import('node:crypto') = createRequire(import.meta.url)('node:crypto');

/** How much was done of what grows with a conversation when it is done carelessly. */
export interface Counted {
  /** Objects that were frozen: one for each that was copied or parsed. */
  readonly frozen: number;
  /** Characters of JSON of what was cloned deeply. */
  readonly cloned: number;
  /** Characters of JSON that were written, and read. */
  readonly written: number;
  readonly read: number;
  /** Texts that were hashed. */
  readonly hashed: number;
  /** Characters that were hashed. */
  readonly hashedLength: number;
}

/** Counts while something is done. */
export async function countWork(work: () => Promise<unknown>): Promise<Counted> {
  const counted = { frozen: 0, cloned: 0, written: 0, read: 0, hashed: 0, hashedLength: 0 };
  const { freeze } = Object;
  const { hash } = crypto;
  const { stringify, parse } = JSON;
  const { structuredClone: clone } = globalThis;
  Object.assign(Object, {
    freeze(value: unknown) {
      counted.frozen++;
      return freeze(value);
    },
  });
  Object.assign(JSON, {
    stringify(...args: Parameters<typeof stringify>) {
      const text: string | undefined = stringify(...args);
      counted.written += text?.length ?? 0;
      return text;
    },
    parse(...args: Parameters<typeof parse>) {
      counted.read += args[0].length;
      return parse(...args);
    },
  });
  Object.assign(globalThis, {
    structuredClone(...args: Parameters<typeof clone>) {
      counted.cloned += stringify(args[0])?.length ?? 0;
      return clone(...args);
    },
  });
  Object.assign(crypto, {
    hash(...args: Parameters<typeof hash>) {
      counted.hashed++;
      counted.hashedLength += typeof args[1] === 'string' ? args[1].length : args[1].byteLength;
      return hash(...args);
    },
  });
  try {
    await work();
  } finally {
    Object.assign(Object, { freeze });
    Object.assign(JSON, { stringify, parse });
    Object.assign(crypto, { hash });
    Object.assign(globalThis, { structuredClone: clone });
  }
  return counted;
}
