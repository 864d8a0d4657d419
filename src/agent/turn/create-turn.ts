import type { Input } from '../../protocol/turn.ts';
import type { ActiveRun } from './active-run.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Turn } from './turn-state.ts';

/** Creates a turn of a run. */
export function createTurn(
  { spec, control, progress }: InvocationState,
  { runId }: ActiveRun,
  input: Input,
  options: {
    readonly turnIndex: number;
    /** The snapshot that the turn starts from. */
    readonly parentId: string | undefined;
    readonly continued?: boolean;
  },
): Turn {
  const { turnIndex, parentId, continued = false } = options;
  const info = {
    ...(spec.store !== undefined && { snapshotId: runId }),
    ...(parentId !== undefined && { parentId }),
    turnIndex,
    signal: control.signal,
  };
  // What earlier attempts have used in this turn counts, whether the turn continues or starts over.
  const spent = progress.turnsBegun === 0 ? progress.spentBefore : undefined;
  return {
    info,
    input,
    continued,
    customSent: false,
    artifactsSent: new Map(),
    hasTimedOut: false,
    usage: spent?.usage ?? {},
    toolCalls: spent?.toolCalls ?? 0,
    generated: 0,
    firstIndex: 0,
    hasSnapshots: false,
    isSteered: false,
    toolIterations: 0,
    snapshotIds: [],
    toolKeys: new Map(),
  };
}
