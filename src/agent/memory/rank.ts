import type { MemoryScope, MemorySupport, MemoryVersion } from '../../store/contract/store.ts';
import type { MemoryDefinition, RankedVersion } from '../contract/memory.ts';
import { ScopeIndex } from './scope-index.ts';

/** What a query is looked for in. */
export interface RankFrom {
  readonly definition: MemoryDefinition;
  readonly support: MemorySupport;
  readonly scope: MemoryScope;
  readonly index: ScopeIndex;
  /** Versions that the turn has not saved. */
  readonly pending: readonly MemoryVersion[];
}

/** The versions that fit a query, best first: by its words, and by its meaning if the memory has embeddings. */
export async function ranked(
  query: string,
  { definition: { vectors }, support, scope, index, pending }: RankFrom,
): Promise<readonly RankedVersion[]> {
  const stored = index.rank(query);
  const found = (await vectors?.rank(query, stored, { support, scope, index })) ?? stored;
  if (pending.length === 0) return found;
  const own = new ScopeIndex();
  for (const version of pending) own.add(version);
  return [...own.rank(query), ...found].sort((a, b) => b.score - a.score);
}
