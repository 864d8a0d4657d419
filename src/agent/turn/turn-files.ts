import { toWaymarkError } from '../../core/error.ts';
import type { InvocationState } from './invocation-state.ts';
import type { ActiveRun, Outcome } from './turn-state.ts';

/** A run that is taken over. */
interface Takeover {
  /** Whether it continues within a turn. */
  readonly midTurn: boolean;
}

/** Opens the files of an agent with a workspace, unless the run has them open, and makes them those that the turn starts with. */
export async function openFiles(
  invocation: InvocationState,
  run: ActiveRun,
  takeover?: Takeover,
): Promise<void> {
  if (invocation.files !== undefined) return;
  // Agents without a workspace load nothing of it.
  const { openWorkspace } = await import('./turn-workspace.ts');
  const files = await openWorkspace(invocation, run, { isTakeover: takeover !== undefined });
  invocation.files = files;
  try {
    await (takeover === undefined ? files.start(run) : files.takeOver(run, takeover.midTurn));
  } catch (error) {
    await closeFiles(invocation, { failed: true });
    throw error;
  }
}

/** Stores the files with which a turn ends. A turn whose files cannot be stored has failed. */
export async function captureEnd(invocation: InvocationState, outcome: Outcome): Promise<Outcome> {
  const { files, control } = invocation;
  if (files === undefined || outcome.kind === 'lost' || outcome.kind === 'elsewhere') {
    return outcome;
  }
  try {
    await files.capture();
    return outcome;
  } catch (error) {
    if (control.cause?.kind === 'lost') return { kind: 'lost' };
    invocation.failures.report(error, 'run');
    return outcome.kind === 'failed' ? outcome : { kind: 'failed', error: toWaymarkError(error) };
  }
}

/** Releases the files of a turn. */
export async function closeFiles(
  invocation: InvocationState,
  options: { readonly failed: boolean },
): Promise<void> {
  const { files } = invocation;
  invocation.files = undefined;
  try {
    await files?.close(options);
  } catch (error) {
    invocation.failures.report(error, 'run');
  }
}
