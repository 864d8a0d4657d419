import type {
  MemoryNote,
  MemoryPlace,
  MemoryScope,
  MemorySession,
  MemorySpan,
  MemoryVersion,
} from '../contract/store.ts';

/** Versions that one call reads at most. */
export const memoryPage = 1_000;

export const emptyNote: MemoryNote = { path: [], given: [] };

/** Whether a version is on a path. */
export function isOnMemoryPath(
  path: readonly MemorySpan[],
  { lane, seq }: { readonly lane: string; readonly seq: number },
): boolean {
  return path.some(([on, from, to]) => on === lane && from <= seq && seq <= to);
}

/**
 * The path with a new version. If the lane has numbers after the end of the path, turns that were left have written them, and the
 * path continues behind them.
 */
export function extendMemoryPath(
  path: readonly MemorySpan[],
  {
    lane,
    seq,
    last,
  }: Pick<MemoryPlace, 'lane'> & Pick<MemorySession, 'last'> & { readonly seq: number },
): readonly MemorySpan[] {
  const end = path.at(-1);
  if (end === undefined || end[0] !== lane || end[2] < last) return [...path, [lane, seq, seq]];
  return path.with(-1, [lane, end[1], seq]);
}

/** For each entry of some versions that are deleted, the number from which all its versions are deleted as well. */
export function deletedFrom(
  versions: Iterable<Pick<MemoryVersion, 'entry' | 'no'>>,
): Map<string, number> {
  const from = new Map<string, number>();
  for (const { entry, no } of versions) {
    from.set(entry, Math.min(no, from.get(entry) ?? Number.POSITIVE_INFINITY));
  }
  return from;
}

/** The key of the scope with the entries of an owner. */
export function ownedScope(memory: string, owner: string): string {
  return JSON.stringify([memory, 'owner', owner]);
}

/** The name of the memory whose scope with the entries of an owner has a key; `undefined` for the other scopes. */
export function nameOfOwned(key: string): string | undefined {
  const [memory, kind] = JSON.parse(key) as readonly string[];
  return kind === 'owner' ? memory : undefined;
}

/** The scope with a mark for each turn that entries may be extracted from. */
export function turnScope({ key }: Pick<MemoryScope, 'key'>): string {
  return JSON.stringify(['turns', JSON.parse(key)]);
}

/** The scope with the vectors of the entries of another one. */
export function vectorScope({ key, owner }: MemoryScope): MemoryScope {
  const own = JSON.stringify(['vectors', JSON.parse(key)]);
  return owner === undefined ? { key: own } : { key: own, owner };
}
