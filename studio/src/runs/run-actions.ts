import type { RunInfo } from '../../../src/client/index.ts';
import { lookNow } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { toast } from '../ui/toasts.tsx';

/** Stops a run, wherever it is worked on, and says what came of that. */
export async function abortRun({ agent, snapshotId, mode }: RunInfo): Promise<void> {
  try {
    const status = await agentOf(agent).abort(snapshotId);
    toast({ text: wordsFor(status, mode) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    toast({ text: `Could not abort the run. ${reason}`, isFault: true });
  }
  lookNow();
}

function wordsFor(status: string | undefined, mode: RunInfo['mode']): string {
  if (status === 'aborted') return 'Aborted. What it had done so far can still be looked at.';
  if (status === 'pending')
    return mode === 'detached' ? 'Stopping.' : 'Stopping; the partial answer is kept.';
  return status === undefined ? 'That run is not known any more.' : `Too late: it has ${status}.`;
}
