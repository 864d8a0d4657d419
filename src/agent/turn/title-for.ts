import type { InvocationState } from './invocation-state.ts';

/** The title of a session after its first turn. A failure is only reported: a missing title must not fail a turn. */
export function titleFor({ spec, working, failures }: InvocationState): string | undefined {
  try {
    return spec.titleOf(working.state);
  } catch (error) {
    failures.report(error, 'hook');
    return undefined;
  }
}
