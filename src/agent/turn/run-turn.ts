import { toWaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { takeBreak } from '../../core/platform.ts';
import { inSpan, type Span, type SpanAttributes } from '../../core/trace.ts';
import { genAi, attributes as names } from '../../core/trace-names.ts';
import { type GenerateHooks, generateScope } from '../../generate/hooks.ts';
import type { Message } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages/tool-round.ts';
import type { Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { ToolEffects } from '../../session/tool-effects.ts';
import { transformState } from '../persistence/transform.ts';
import type { TurnFunction, TurnResult } from '../spec/handler.ts';
import { checkState, hasNewCustom, withCheckedState } from './check-state.ts';
import { finishTurn } from './finish-turn.ts';
import { adviseFrozen } from './frozen-advice.ts';
import type { InvocationState } from './invocation-state.ts';
import { keepPartialAnswer } from './partial.ts';
import { appendGenerated } from './running-turn.ts';
import { StopTimeoutError, turnStopTimeoutMs, withStopTimeout } from './stop-timeout.ts';
import { checkpointTurn } from './take-snapshot.ts';
import { hasSteering, takeSteering } from './take-steering.ts';
import { tellModelCall, tellTurn } from './tell-turn.ts';
import {
  checkBudgets,
  checkUnspent,
  checkUsage,
  hasLastingBudget,
  startTimeLimit,
} from './turn-limits.ts';
import { turnSpanContent } from './turn-span-content.ts';
import {
  continueTurn,
  lastRound,
  type Outcome,
  stoppedBy,
  type Turn,
  waitsForSteering,
} from './turn-state.ts';

/** Runs the turn of an accepted input, and saves its outcome. */
export function runTurn(
  invocation: InvocationState,
  turn: Turn,
  fn: TurnFunction,
): Promise<Outcome> {
  const startedAt = performance.now();
  return inTurnSpan(invocation, turn, async (span) => {
    // Read before the turn ends, which moves the snapshot that it continues from.
    const content = span.recording ? turnSpanContent(invocation, turn) : undefined;
    span.setContent(content);
    let ended = await attempt(invocation, turn, fn);
    // A message came just before the end.
    while (ended.kind === 'steered') {
      turn.isSteered = true;
      ended = await attempt(invocation, turn, fn);
    }
    if (ended.kind === 'failed') span.recordError(ended.error);
    if (content) span.setContent({ ...content, outcome: ended.kind });
    nameSnapshots(invocation, turn, span);
    tellTurn(invocation, turn, ended, performance.now() - startedAt);
    // With an instant model and a synchronous store, one turn after the other would keep heartbeats and sockets waiting forever.
    await takeBreak();
    return ended;
  });
}

/** Works on a turn and saves its outcome. */
async function attempt(
  invocation: InvocationState,
  turn: Turn,
  fn: TurnFunction,
): Promise<Outcome> {
  const performed = await perform(invocation, turn, fn);
  const result = hasNewCustom(invocation)
    ? await withCheckedState(invocation, performed)
    : performed;
  const isCut = result.kind === 'stopped' || result.kind === 'lost';
  // A handler that did not await `session.run` may have returned already, which ended the turn.
  if (isCut && !invocation.working.isClosed) keepPartialAnswer(invocation);
  if (result.kind === 'failed') invocation.failures.report(result.error, 'turn');
  if (turn.hasTimedOut) invocation.closeAfterStop();
  return await finishTurn(invocation, turn, result);
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
    const unspent = checkUnspent(invocation);
    if (unspent !== undefined) await unspent;
    // Its end was refused because of a message, or the attempt before has left one.
    if (turn.isSteered || turn.continued) await isSteered(invocation, turn);
    while (control.cause === undefined) {
      const work = generateScope.run(
        {
          hooks: hooksOf(invocation, turn),
          context: invocation.request.context,
          model: invocation.handlerModel,
        },
        async () => fn(turn.input, turn.info),
      );
      const result = (await withStopTimeout(invocation, work, turnStopTimeoutMs)) ?? {};
      if (control.cause !== undefined) break;
      const outcome = done(invocation, turn, result);
      const mayContinue = waitsForSteering(outcome) && hasSteering(invocation);
      if (!mayContinue || !(await isSteered(invocation, turn))) return outcome;
    }
  } catch (error) {
    turn.hasTimedOut = error instanceof StopTimeoutError;
    adviseFrozen(error);
    if (control.cause === undefined) return { kind: 'failed', error: toWaymarkError(error) };
  } finally {
    endTimeLimit();
  }
  return stoppedBy(control.cause);
}

function done(invocation: InvocationState, turn: Turn, result: TurnResult): Outcome {
  const { finishReason, output, usage } = result;
  // Calls that the handler made by itself.
  if (usage !== undefined) noteUsage(invocation, turn, '', usage);
  if (output !== undefined) turn.output = toJson(output, 'The output of the turn');
  const waits = pendingInterrupts(lastRound(invocation.working.state.history)).length > 0;
  return {
    kind: 'done',
    finishReason: finishReason ?? (waits ? 'interrupted' : 'stop'),
    ...(turn.output !== undefined && { output: turn.output }),
  };
}

/** Adds the messages that came while the model gave its last answer, which the model has to answer as well. */
async function isSteered(invocation: InvocationState, turn: Turn): Promise<boolean> {
  const messages = await takeSteering(invocation);
  if (messages.length === 0) return false;
  turn.isSteered = false;
  continueTurn(turn, messages.length);
  await checkpointTurn(invocation, turn);
  return true;
}

/** Counts what a model call has used, for this turn and for those of the agents that it works for. */
function noteUsage(invocation: InvocationState, turn: Turn, model: string, usage: Usage): void {
  invocation.spending.add(invocation.spec.name, model, usage);
  turn.usage = addUsage(turn.usage, usage);
  for (let at = invocation.request.parent; at; at = at.request.parent) {
    if (at.turn !== undefined) at.turn.usage = addUsage(at.turn.usage, usage);
  }
}

function hooksOf(invocation: InvocationState, turn: Turn): GenerateHooks {
  const isLasting = hasLastingBudget(invocation);
  const isShown = invocation.host.telemetry.content === true;
  return {
    // A client-held state has no store that a replay could read.
    recordTool:
      invocation.spec.store === undefined ? undefined : () => new ToolEffects(invocation.working),
    beforeModelCall(call) {
      invocation.lastModel = call.model;
      return checkBudgets(invocation, call);
    },
    onModelCallFailed(reservation) {
      invocation.spending.settle(reservation);
      return invocation.spending.flush().catch(() => {});
    },
    onModelCall({ model, usage, finishReason, reservation }) {
      tellModelCall(invocation, { model, finishReason, usage });
      noteUsage(invocation, turn, model, usage);
      if (reservation !== undefined) invocation.spending.settle(reservation);
      // A model that answers after its turn has ended has cost something all the same.
      const isLate = invocation.turn !== turn;
      // What cannot be written now goes along with the next commit.
      return isLasting || isLate ? invocation.spending.flush().catch(() => {}) : undefined;
    },
    showMessages: isShown ? (messages) => shownMessages(invocation, messages) : undefined,
    onAnswer: () => checkUsage(invocation, turn),
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
      const steered = await takeSteering(invocation);
      turn.generated += steered.length;
      await checkpointTurn(invocation, turn);
      // A message that the checkpoint found is in the store, so a takeover before the next checkpoint does not lose it.
      const late = await takeSteering(invocation);
      turn.generated += late.length;
      return [...steered, ...late];
    },
  };
}

/** Messages as clients would get them. */
function shownMessages(
  { transform, position: { sessionId } }: InvocationState,
  messages: readonly Message[],
): readonly Message[] {
  return transformState(transform, { sessionId, messages: [...messages] })?.messages ?? [];
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
  { spec, scope: { owner }, position: { sessionId } }: InvocationState,
  { info }: Turn,
  fn: (span: Span) => Promise<Value>,
): Promise<Value> {
  const attributes = (): SpanAttributes => ({
    [genAi.agentName]: spec.name,
    [genAi.conversationId]: sessionId,
    [names.sessionId]: sessionId,
    [names.turnIndex]: info.turnIndex,
  });
  return inSpan(`turn ${info.turnIndex}`, { attributes, owner }, fn);
}
