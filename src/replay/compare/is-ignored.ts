import type { Divergence } from './divergence.ts';

/** Whether a difference is one of the kinds, or at or below one of the paths, that do not count. */
export function isIgnored({ kind, path }: Divergence, ignore: readonly string[]): boolean {
  return ignore.some((each) => each === kind || path === each || path.startsWith(`${each}/`));
}
