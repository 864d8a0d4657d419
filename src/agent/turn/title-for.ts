import { fullStore } from '../spec/spec.ts';
import type { InvocationState } from './invocation-state.ts';

/**
 * The title of a session after its first turn; `undefined` if the store keeps none. A failure is only reported: a missing title
 * must not fail a turn.
 */
export function titleFor({ spec, working, failures }: InvocationState): string | undefined {
  if (fullStore(spec)?.timeline === undefined) return undefined;
  try {
    return spec.titleOf(working.state);
  } catch (error) {
    failures.report(error, 'hook');
    return undefined;
  }
}
