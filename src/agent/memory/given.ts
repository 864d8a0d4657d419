import { type ContextKey, createContextKey } from '../../core/platform.ts';
import type { MemoryVersion } from '../../store/contract/store.ts';

/** Set while a recorded turn is replayed: the versions that it was given. */
export const givenMemory: ContextKey<readonly MemoryVersion[]> =
  createContextKey('waymark.givenMemory');
