import { expect } from 'vitest';

/** Looks again and again, for as long as a busy machine may need. */
export function soon<T>(read: () => Promise<T>): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}
