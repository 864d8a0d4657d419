import { mapConcurrent } from '../core/async/map-concurrent.ts';
import { raceSignal } from '../core/async/signal.ts';
import {
  recordOf,
  type ToolRecord,
  withoutRecord,
  withRecord,
} from '../protocol/messages/tool-record.ts';
import { generateScope, type ToolRecorder } from './hooks.ts';
import { defaultLimits } from './limits.ts';
import type { ToolOutcome } from './progress.ts';
import { runToolCall, type ToolRun, type ToolScope } from './run-tool-call.ts';
import { toolReplay } from './tool-replay.ts';

/**
 * Runs tools side by side, a bounded number at a time, and gives what each came to, in order; rejects at once when the
 * signal aborts.
 */
export async function runTools(
  scope: ToolScope,
  runs: readonly ToolRun[],
): Promise<readonly ToolOutcome[]> {
  const { progress, signal } = scope;
  const index = progress.length;
  progress.startTools(runs.map(({ request }) => request));
  const most = scope.limits.toolConcurrency ?? defaultLimits.toolConcurrency;
  const changedAt: (number | undefined)[] = [];
  const outcomes = mapConcurrent(runs, most, async (run, at): Promise<ToolOutcome> => {
    // A call that has not begun when the turn is stopped does not begin.
    signal.throwIfAborted();
    const outcome = run.response
      ? { response: run.response }
      : await runRecorded(scope, run, index, (change) => {
          changedAt[at] = change;
        });
    progress.endTool(at, outcome);
    if ('response' in outcome) {
      await scope.emit({ role: 'tool', index, content: [withoutRecord(outcome.response)] });
    }
    return outcome;
  });
  const ended = await raceSignal(outcomes, signal);
  toolReplay.get()?.endRound();
  return withOrder(ended, changedAt);
}

/** Runs a tool, and adds to its outcome what it did to the session and how it was restarted. */
async function runRecorded(
  scope: ToolScope,
  run: ToolRun,
  index: number,
  onChange: (firstChange: number | undefined) => void,
): Promise<ToolOutcome> {
  const recorder = generateScope.get()?.hooks?.recordTool?.();
  if (recorder === undefined) return await runOrReplay(scope, run, index);
  const outcome = await recorder.run(() => runOrReplay(scope, run, index));
  const record = recordOfRun(run, recorder);
  if (record === undefined) return outcome;
  onChange(recorder.firstChange);
  return withRecordOf(outcome, record);
}

function withRecordOf(outcome: ToolOutcome, record: ToolRecord): ToolOutcome {
  return 'response' in outcome
    ? { response: withRecord(outcome.response, record) }
    : { interrupted: withRecord(outcome.interrupted, record) };
}

/** Adds the order of the changes to the records, where it is not that of the calls. */
function withOrder(
  outcomes: readonly ToolOutcome[],
  changedAt: readonly (number | undefined)[],
): readonly ToolOutcome[] {
  const changes = changedAt.filter((change) => change !== undefined);
  const order = changes.toSorted((a, b) => a - b);
  if (changes.every((change, place) => change === order[place])) return outcomes;
  return outcomes.map((outcome, at) => {
    const change = changedAt[at];
    const part = 'response' in outcome ? outcome.response : outcome.interrupted;
    const record = recordOf(part);
    if (change === undefined || record === undefined) return outcome;
    return withRecordOf(outcome, { ...record, order: order.indexOf(change) });
  });
}

function recordOfRun(
  { request, resumed, isEdited = false }: ToolRun,
  recorder: ToolRecorder,
): ToolRecord | undefined {
  const effects = recorder.record();
  if (resumed === undefined) return effects;
  return { ...effects, resumed, ...(isEdited && { input: request.toolRequest.input ?? null }) };
}

async function runOrReplay(scope: ToolScope, run: ToolRun, index: number): Promise<ToolOutcome> {
  const { request, resumed } = run;
  const replay = toolReplay.get();
  // A tool that no longer exists is refused as in production.
  if (replay === undefined || !scope.tools.has(request.toolRequest.name))
    return await runToolCall(scope, run, index);
  return (await replay.answer({ request, resumed })) ?? (await runToolCall(scope, run, index));
}
