/** The candidate closest to a mistyped word; `undefined` when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const steps = candidate.startsWith(word) ? 1 : editSteps(word, candidate);
    if (steps >= least) continue;
    least = steps;
    best = candidate;
  }
  return best;
}

/** The Levenshtein distance of two words. */
function editSteps(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const same = (row[j] ?? 0) + (b[j] === letter ? 0 : 1);
      next.push(Math.min(same, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
