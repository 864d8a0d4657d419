const width = 20;

/** Progress as text: with a bar where it is known how much there is in all. */
export function progressBar(what: string, done: number, total: number | undefined): string {
  if (total === undefined) return `${what} … ${done}`;
  // Turns may add to what there was at the start.
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.floor(share * width);
  const bar = `${'#'.repeat(filled)}${'-'.repeat(width - filled)}`;
  return `${what} … [${bar}] ${Math.floor(share * 100)} %`;
}
