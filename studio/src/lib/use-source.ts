import { useSyncExternalStore } from 'react';
import type { Observable } from './observable.ts';

/** The present value of something that changes. */
export function useSource<T>(source: Observable<T>): T {
  return useSyncExternalStore(source.subscribe, source.get);
}
