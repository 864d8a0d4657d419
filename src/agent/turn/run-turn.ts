import { isWaymarkError, toWaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { takeBreak } from '../../core/platform.ts';
import { inSpan, type Span } from '../../core/trace.ts';
import { genAi, attributes as names } from '../../core/trace-names.ts';
import { type GenerateHooks, generateScope } from '../../generate/hooks.ts';
import { addUsage } from '../../generate/usage.ts';
import { pendingInterrupts } from '../../protocol/messages/tool-round.ts';
import type { TurnFunction, TurnResult } from '../spec/handler.ts';
import { checkState, withCheckedState } from './check-state.ts';
import { finishTurn } from './finish-turn.ts';
import type { InvocationState } from './invocation-state.ts';
import { keepPartialAnswer } from './partial.ts';
import { appendGenerated } from './running-turn.ts';
import { StopTimeoutError, turnStopTimeoutMs, withStopTimeout } from './stop-timeout.ts';
import { checkpointTurn } from './take-snapshot.ts';
import { checkTokensLeft, checkUnspent, checkUsage, startTimeLimit } from './turn-limits.ts';
import { lastRound, type Outcome, stoppedBy, type Turn } from './turn-state.ts';

/** Runs the turn of an accepted input, and saves its outcome. */
export async function runTurn(
  invocation: InvocationState,
  turn: Turn,
  fn: TurnFunction,
): Promise<Outcome> {
  return await inTurnSpan(invocation, turn, async (span) => {
    const result = await withCheckedState(invocation, await perform(invocation, turn, fn));
    const isCut = result.kind === 'stopped' || result.kind === 'lost';
    // A handler that did not await `session.run` may have returned already, which ended the turn.
    if (isCut && !invocation.working.isClosed) keepPartialAnswer(invocation);
    if (result.kind === 'failed') invocation.failures.report(result.error, 'turn');
    if (turn.hasTimedOut) invocation.closeAfterStop();
    const ended = await finishTurn(invocation, turn, result);
    if (ended.kind === 'failed') span.recordError(ended.error);
    nameSnapshots(invocation, turn, span);
    // With an instant model and a synchronous store, one turn after the other would keep heartbeats and sockets waiting forever.
    await takeBreak();
    return ended;
  });
}

async function perform(
  invocation: InvocationState,
  turn: Turn,
  fn: TurnFunction,
): Promise<Outcome> {
  const { control, spec } = invocation;
  if (control.cause !== undefined) return stoppedBy(control.cause);
  const endTimeLimit = startTimeLimit(invocation, spec.limits.turn?.timeout);
  try {
    checkUnspent(invocation);
    const work = generateScope.run(
      { hooks: hooksOf(invocation, turn), context: invocation.request.context },
      async () => fn(turn.input, turn.info),
    );
    const result = (await withStopTimeout(invocation, work, turnStopTimeoutMs)) ?? {};
    if (control.cause === undefined) return done(invocation, turn, result);
  } catch (error) {
    turn.hasTimedOut = error instanceof StopTimeoutError;
    if (control.cause === undefined) return { kind: 'failed', error: toWaymarkError(error) };
  } finally {
    endTimeLimit();
  }
  return stoppedBy(control.cause);
}

function done(invocation: InvocationState, turn: Turn, result: TurnResult): Outcome {
  const { finishReason, output, usage } = result;
  turn.usage = addUsage(turn.usage, usage);
  if (output !== undefined) turn.output = toJson(output, 'The output of the turn');
  const waits = pendingInterrupts(lastRound(invocation.working.state.history)).length > 0;
  return {
    kind: 'done',
    finishReason: finishReason ?? (waits ? 'interrupted' : 'stop'),
    ...(turn.output !== undefined && { output: turn.output }),
  };
}

function hooksOf(invocation: InvocationState, turn: Turn): GenerateHooks {
  return {
    beforeModelCall: () => checkTokensLeft(invocation, turn),
    onModelCall: ({ usage }) => {
      turn.usage = addUsage(turn.usage, usage);
      checkUsage(invocation, turn);
    },
    onFailure: (error, { model, ...subject }) => {
      // A failure that a stop has caused shows in how the turn ends.
      if (invocation.control.cause !== undefined) return;
      if (subject.tool === undefined && subject.toolSource === undefined)
        invocation.failures.report(error, 'model', { ...(model && { model }) });
      else invocation.failures.reportTool(error, subject);
    },
    onToolIteration: async ({ messages }) => {
      appendGenerated(invocation, turn, messages);
      turn.toolCalls += messages.at(-1)?.content.length ?? 0;
      checkUsage(invocation, turn);
      await checkState(invocation);
      await checkpointTurn(invocation, turn).catch((error: unknown) => {
        // Stale attempt: another worker has taken over the run, which has not failed.
        if (isWaymarkError(error) && error.status === 'ABORTED') invocation.control.markLost();
        throw error;
      });
    },
  };
}

/** Links the turn's span to its snapshots. */
function nameSnapshots({ spec }: InvocationState, { snapshotIds }: Turn, span: Span): void {
  const last = snapshotIds.at(-1);
  if (last === undefined || !span.recording) return;
  span.setAttributes({
    [names.snapshotId]: last,
    [names.snapshotIds]: [...snapshotIds],
    [names.genkitSnapshotId]: last,
    [names.genkitAgent]: spec.name,
  });
}

function inTurnSpan<Value>(
  { spec, position: { sessionId } }: InvocationState,
  { info }: Turn,
  fn: (span: Span) => Promise<Value>,
): Promise<Value> {
  const attributes = {
    [genAi.agentName]: spec.name,
    [genAi.conversationId]: sessionId,
    [names.sessionId]: sessionId,
    [names.turnIndex]: info.turnIndex,
  };
  return inSpan(`turn ${info.turnIndex}`, { attributes }, fn);
}
