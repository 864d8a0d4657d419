import type { SpanError, TraceSpan } from './traces.ts';

/** The errors of the latest invocation of a session, as this machine's server recorded them. */
export function latestFault(
  spans: readonly TraceSpan[] | undefined,
  sessionId: string | undefined,
): SpanError | undefined {
  return spans?.findLast(
    ({ name, attributes }) =>
      name.startsWith('invoke_agent ') && attributes['waymark.session.id'] === sessionId,
  )?.error;
}

/** The errors of the turn that ended with a snapshot. */
export function faultOfSnapshot(
  spans: readonly TraceSpan[] | undefined,
  snapshotId: string,
): SpanError | undefined {
  return spans?.find(
    ({ attributes, error }) => error && attributes['waymark.snapshot.id'] === snapshotId,
  )?.error;
}
