import type { RunMode } from '../../protocol/run.ts';
import type { Input } from '../../protocol/turn.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** What development tools learn of a turn besides its attributes (`SpanRecord.content`). */
export interface TurnSpanContent {
  readonly input: Input;
  /** The snapshot that the turn continues from; absent for a first turn. */
  readonly from?: string;
  /** 1, and one more each time that another process took over the run. */
  readonly attempt: number;
  readonly mode: RunMode;
  /** How it ended; absent while it runs. */
  readonly outcome?: Outcome['kind'];
}

export function turnSpanContent(
  { lineage, run, request }: InvocationState,
  { input }: Turn,
): TurnSpanContent {
  const { fallbackSnapshotId: from } = lineage;
  return {
    input,
    ...(from !== undefined && { from }),
    attempt: run?.turnBase.run?.attempt ?? 1,
    mode: run?.detached === undefined ? request.mode : 'detached',
  };
}
