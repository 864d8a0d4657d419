import { defined } from '../core/json/json.ts';
import type { Snapshot } from './snapshot.ts';
import type { State } from './state.ts';
import type { Output } from './turn.ts';

/** The output of a run, derived from its snapshot: for clients that reconnect after the run has ended. */
export function outputOfSnapshot(snapshot: Omit<Snapshot, 'state'> & { state?: unknown }): Output {
  const { sessionId, snapshotId, parentId, status, finishReason, usage, error } = snapshot;
  const common = { sessionId, ...(usage && { usage }) };
  // A run that did not succeed leaves the session where it was.
  const lastGood = { ...common, ...(parentId !== undefined && { snapshotId: parentId }) };
  switch (status) {
    case 'succeeded':
      return {
        ...common,
        ...defined({ snapshotId, finishReason }),
        ...answerOf(snapshot.state as State | undefined),
      };
    case 'aborted':
      return { ...lastGood, finishReason: 'aborted' };
    case 'failed':
      return { ...lastGood, finishReason: 'failed', ...(error && { error }) };
    case 'pending':
    case 'expired':
      return {
        ...lastGood,
        finishReason: 'failed',
        error: {
          status: 'UNAVAILABLE',
          message: 'The process that worked on this turn has stopped. Send it again.',
        },
      };
  }
}

function answerOf(state: State | undefined): Pick<Output, 'message' | 'artifacts'> {
  const last = state?.messages?.at(-1);
  const artifacts = state?.artifacts ?? [];
  return {
    ...(last?.role === 'model' && { message: last }),
    ...(artifacts.length > 0 && { artifacts }),
  };
}
