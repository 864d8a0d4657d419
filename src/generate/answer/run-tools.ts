import { raceSignal } from '../../core/async/signal.ts';
import { defined } from '../../core/json/json.ts';
import type { Message, ToolRequestPart } from '../../protocol/message.ts';
import { toolRequestsOf } from '../../protocol/messages.ts';
import {
  recordOf,
  type ToolRecord,
  withoutRecord,
  withRecord,
} from '../../protocol/tool-record.ts';
import { defaultLimits } from '../generate-options.ts';
import { generateScope, type ToolOutcome, toolReplay } from '../hooks.ts';
import { toolMessage } from '../template.ts';
import type { Progress } from './response.ts';
import { runToolCall, type ToolRun, type ToolScope } from './run-tool-call.ts';

/**
 * Runs tools concurrently, a bounded number at a time, and gives their outcomes in order; rejects at once when the signal aborts.
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
  const { request, resumed, isEdited } = run;
  const input = isEdited ? (request.toolRequest.input ?? null) : undefined;
  const effects = recorder.record();
  const record = resumed === undefined ? effects : { ...effects, resumed, ...defined({ input }) };
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

async function runOrReplay(scope: ToolScope, run: ToolRun, index: number): Promise<ToolOutcome> {
  const { request, resumed } = run;
  const replay = toolReplay.get();
  // A tool that no longer exists is refused as in production.
  if (replay === undefined || !scope.tools.has(request.toolRequest.name))
    return await runToolCall(scope, run, index);
  return (await replay.answer({ request, resumed })) ?? (await runToolCall(scope, run, index));
}

/**
 * Adds the results of the tools of a model message. If one was interrupted, the message itself says so and keeps the other results
 * until the interrupt is answered: it is then returned, and the conversation ends with it.
 */
export function addResults(
  progress: Progress,
  message: Message,
  outcomes: readonly ToolOutcome[],
): Message | undefined {
  const responses = outcomes.flatMap((outcome) =>
    'response' in outcome ? [outcome.response] : [],
  );
  if (responses.length === outcomes.length) {
    progress.add(toolMessage(responses));
    return undefined;
  }
  const requests = toolRequestsOf(message);
  const content = message.content.map((part) => {
    const outcome = outcomes[requests.indexOf(part as ToolRequestPart)];
    return outcome && 'toolRequest' in part ? withOutcome(part, outcome) : part;
  });
  return progress.replaceLast({ ...message, content });
}

/**
 * Adds the outcomes of answered interrupts as a message behind the one that asked: stored messages do not change. If a tool was
 * interrupted again, the new message names it and is returned, so that it can be answered next.
 */
export function addResumed(
  progress: Progress,
  outcomes: readonly ToolOutcome[],
): Message | undefined {
  const isWaiting = outcomes.some((outcome) => 'interrupted' in outcome);
  const content = outcomes.map((outcome) =>
    'response' in outcome ? outcome.response : outcome.interrupted,
  );
  const message = progress.add(toolMessage(content));
  return isWaiting ? message : undefined;
}

function withOutcome(part: ToolRequestPart, outcome: ToolOutcome): ToolRequestPart {
  if ('interrupted' in outcome) return outcome.interrupted;
  const { toolResponse, metadata } = outcome.response;
  return {
    toolRequest: part.toolRequest,
    metadata: {
      ...part.metadata,
      ...metadata,
      pendingOutput: toolResponse.output ?? null,
      ...defined({ pendingContent: toolResponse.content }),
    },
  };
}

/** Maps items by an async function that runs for at most `limit` of them at a time; results are in the order of the items. */
async function mapConcurrent<Item, Result>(
  items: readonly Item[],
  limit: number,
  fn: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  if (items.length <= limit) return await Promise.all(items.map(fn));
  const results: Result[] = [];
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await fn(item, index);
  };
  await Promise.all(Array.from({ length: limit }, work));
  return results;
}
