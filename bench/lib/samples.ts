import { type Stats, statsOf } from './stats.ts';

/** Measurements by the length of the session. */
export type Samples = Readonly<Record<number, Stats>>;

/** Collects them. */
export interface SampleCollector {
  /** Takes a value; of a length that nobody asked for it is dropped. */
  add(length: number, value: number): void;
  stats(): Samples;
}

export function createSamples(lengths: readonly number[]): SampleCollector {
  const values = new Map<number, number[]>(lengths.map((length) => [length, []]));
  return {
    add(length, value) {
      values.get(length)?.push(value);
    },
    stats: () =>
      Object.fromEntries(
        [...values].flatMap(([length, found]) =>
          found.length === 0 ? [] : [[length, statsOf(found)]],
        ),
      ),
  };
}
