import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ClaimedRun } from '../engine.ts';
import type { FetchedJob } from './queue.ts';

const crash = v.object({ attempt: v.number(), error: v.string() });

/** A worker that a run was lost with. */
export type Crash = v.InferOutput<typeof crash>;

const keyOf = (nth: number): string => `waymark.crash.${nth}`;

/** What is left with a job that went back to the queue, by us or by the queue itself. */
interface JobOutput {
  /** Why we put it back. */
  readonly waymark?: unknown;
  /** How a worker before us was lost with it, where nobody has noted that with the run yet. */
  readonly crash?: unknown;
  /** What the queue says of a worker that was lost. */
  readonly value?: unknown;
}

const outputOf = (job: FetchedJob): JobOutput =>
  (job as { readonly output?: JobOutput | null }).output ?? {};

/** Whether the last worker of a job was lost with it, and nobody has had it in hands since. */
export function hasJustCrashed(job: FetchedJob): boolean {
  return job.retryCount > 0 && outputOf(job).waymark === undefined;
}

/** How a worker of a job was lost that is not noted with its run yet; `undefined` when none was. */
export function crashOf(job: FetchedJob): string | undefined {
  const { crash: left, value } = outputOf(job);
  if (!hasJustCrashed(job)) return typeof left === 'string' ? left : undefined;
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
  return message === 'job heartbeat timeout'
    ? 'The worker died or lost its connection: no sign of life from it.'
    : String(message ?? 'The worker ended without a word.');
}

/** Notes, with the run, that its last worker was lost, and gives all such notes. */
export async function recordCrash(
  claimed: ClaimedRun,
  error: string | undefined,
): Promise<readonly Crash[]> {
  const crashes: Crash[] = [];
  for (;;) {
    const found = await claimed.getNote(keyOf(crashes.length + 1));
    if (found === undefined) break;
    crashes.push(parseShape(crash, found, 'note of a crash'));
  }
  if (error === undefined) return crashes;
  const last: Crash = { attempt: claimed.run.attempt - 1, error };
  await claimed.saveNote(keyOf(crashes.length + 1), { ...last });
  return [...crashes, last];
}

/** What a run ends with that has cost too many workers. Holds what is needed to try it again by hand. */
export function poisoned({ run }: ClaimedRun, crashes: readonly Crash[]): WaymarkError {
  const details = {
    deadLetter: true,
    attempts: crashes.map(({ attempt, error }) => ({ attempt, error })),
    inputs: run.inputs.slice(run.inputsDone),
  };
  return new WaymarkError(
    'INTERNAL',
    `The run was given up after ${crashes.length} workers were lost with it. See \`details.attempts\`; retry it by hand once the cause is gone.`,
    { details: toJson(details, 'details') },
  );
}
