import type { SuspectLimit } from '../contract/store.ts';

export const anySuspects: SuspectLimit = {
  limit: Number.MAX_SAFE_INTEGER,
  maxCrashes: 2 ** 31 - 1,
  attempts: 2 ** 31 - 1,
};

/** Picks the runs that may be taken over, the least suspicious first. */
export function pickRuns<Run extends { readonly crashes: number }>(
  runs: readonly Run[],
  { limit, maxCrashes, attempts }: SuspectLimit = anySuspects,
): readonly Run[] {
  let left = limit;
  return runs
    .toSorted(
      (a, b) => (a.crashes < attempts ? a.crashes : 0) - (b.crashes < attempts ? b.crashes : 0),
    )
    .filter(({ crashes }) => {
      if (crashes === 0 || crashes >= attempts) return true;
      return crashes <= maxCrashes && left-- > 0;
    });
}
