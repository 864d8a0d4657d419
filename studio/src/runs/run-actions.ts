import type { RunInfo } from '../../../src/client/index.ts';
import { goTo } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { type RecordedTurn, readTurnInput } from '../lib/recorded-turns.ts';
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

/** Starts a new run with the input of a turn, from the snapshot that the turn continued from; of a first turn in a new session. */
export async function retryTurn(turn: RecordedTurn): Promise<void> {
  const { agent, owner } = turn;
  try {
    const { input, from } = await readTurnInput(turn);
    const { sessionId } = await agentOf(agent, { owner }).start(
      input,
      from === undefined ? {} : { snapshotId: from },
    );
    toast({
      text: from === undefined ? 'Retried in a new session.' : 'Retried from the same snapshot.',
      action: {
        label: 'Open',
        run: () => goTo({ view: 'chat', agent, session: sessionId, owner }),
      },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    toast({ text: `Could not retry. ${reason}`, isFault: true });
  }
  lookNow();
}

function wordsFor(status: string | undefined, mode: RunInfo['mode']): string {
  if (status === 'aborted') return 'Aborted. The partial state is kept for inspection.';
  if (status === 'pending')
    return mode === 'detached' ? 'Stopping.' : 'Stopping; the partial answer is kept.';
  return status === undefined
    ? 'This run no longer exists.'
    : `Too late: the run has already ended (${status}).`;
}
