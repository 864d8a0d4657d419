import type { WaymarkError } from '../../core/error.ts';
import { WaymarkError as Failure } from '../../core/error.ts';
import { toJson } from '../../core/json.ts';
import type { RunSupport, TakenRun } from '../../session/store.ts';
import type { FetchedJob } from './queue.ts';

/** A worker that a run was lost with. */
export interface Crash {
  readonly attempt: number;
  readonly error: string;
}

const keyOf = (nth: number): string => `waymark.crash.${nth}`;

/** How the last worker of a job ended; `undefined` when it gave the job back, or there was none. */
export function crashOf(job: FetchedJob): string | undefined {
  if (job.retryCount === 0) return undefined;
  const { output } = job as { readonly output?: { waymark?: unknown; value?: unknown } | null };
  if (output?.waymark !== undefined) return undefined;
  const { value } = output ?? {};
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
  return message === 'job heartbeat timeout'
    ? 'The worker died or lost its connection: no sign of life from it.'
    : String(message ?? 'The worker ended without a word.');
}

/** Notes, with the run, that its last worker was lost, and gives all such notes. */
export async function recordCrash(
  runs: RunSupport,
  { claim }: TakenRun,
  error: string | undefined,
): Promise<readonly Crash[]> {
  const crashes: Crash[] = [];
  for (;;) {
    const found = await runs.getStep(claim, keyOf(crashes.length + 1));
    if (found === undefined) break;
    crashes.push(found.value as unknown as Crash);
  }
  if (error === undefined) return crashes;
  const crash: Crash = { attempt: claim.attempt - 1, error };
  await runs.saveStep(claim, keyOf(crashes.length + 1), toJson(crash, 'crash'));
  return [...crashes, crash];
}

/** What a run ends with that has cost too many workers. Holds what is needed to try it again by hand. */
export function poisoned({ run }: TakenRun, crashes: readonly Crash[]): WaymarkError {
  const details = {
    deadLetter: true,
    attempts: crashes.map(({ attempt, error }) => ({ attempt, error })),
    inputs: run.inputs.slice(run.inputsDone),
  };
  return new Failure(
    'INTERNAL',
    `The run was given up after ${crashes.length} workers were lost with it. See \`details.attempts\`; retry it by hand once the cause is gone.`,
    { details: toJson(details, 'details') },
  );
}
