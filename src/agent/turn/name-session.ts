import { fullStore } from '../spec/spec.ts';
import type { InvocationState } from './invocation-state.ts';

/** Gives a session its title after its first turn. A failure is only reported: a missing title must not fail a turn. */
export async function nameSession(invocation: InvocationState): Promise<void> {
  const { spec, scope, position, working } = invocation;
  const { sessionId } = position;
  const timeline = fullStore(spec)?.timeline;
  if (timeline === undefined) return;
  try {
    const title = spec.titleOf(working.state);
    if (title !== undefined)
      await timeline.updateSession(scope, sessionId, { defaultTitle: title });
  } catch (error) {
    invocation.failures.report(error, 'hook');
  }
}
