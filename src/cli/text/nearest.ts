import { editDistance } from '../../core/closest.ts';

/** The candidate closest to a mistyped word; `undefined` when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const steps = candidate.startsWith(word) ? 1 : editDistance(word, candidate);
    if (steps >= least) continue;
    least = steps;
    best = candidate;
  }
  return best;
}
