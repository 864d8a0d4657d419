import { toWaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import { takeBreak } from '../../core/platform.ts';
import { parse } from '../../core/schema/schema.ts';
import { type GenerateHooks, generateScope } from '../../generate/hooks.ts';
import type { Message } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { ToolEffects } from '../../session/working-state.ts';
import { checkCustomSize, maxCustomLength } from '../../store/rules/size-limits.ts';
import type { RunningTurn, TurnFunction, TurnResult } from '../contract/handler.ts';
import { transformState } from '../persistence/transform.ts';
import { checkpointTurn } from './commit.ts';
import { finishTurn } from './finish.ts';
import type { InvocationState } from './invocation-state.ts';
import {
  checkBudgets,
  checkUnspent,
  checkUsage,
  hasLastingBudget,
  startTimeLimit,
} from './limits.ts';
import { withMemory } from './memory-prompt.ts';
import { hasSteering, takeSteering } from './steer.ts';
import {
  adviseFrozen,
  keepPartialAnswer,
  StopTimeoutError,
  stoppedBy,
  turnStopTimeoutMs,
  withStopTimeout,
} from './stop.ts';
import {
  inTurnSpan,
  logModelCall,
  nameSnapshots,
  reportTurn,
  turnSpanContent,
} from './telemetry.ts';
import { lastRound, type Outcome, type Turn, waitsForSteering } from './turn-state.ts';

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
    reportTurn(invocation, turn, ended, performance.now() - startedAt);
    // With an instant model and a synchronous store, one turn after the other would keep heartbeats and sockets waiting forever.
    await takeBreak();
    return ended;
  });
}

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
  // Another generate call follows, over the state as it is.
  turn.continued = true;
  turn.firstIndex += turn.generated + messages.length;
  turn.generated = 0;
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
      logModelCall(invocation, { model, finishReason, usage });
      noteUsage(invocation, turn, model, usage);
      if (reservation !== undefined) invocation.spending.settle(reservation);
      // A model that answers after its turn has ended has cost something all the same.
      const isLate = invocation.turn !== turn;
      // The next commit writes it if this fails.
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

function shownMessages(
  { transform, position: { sessionId } }: InvocationState,
  messages: readonly Message[],
): readonly Message[] {
  return transformState(transform, { sessionId, messages: [...messages] })?.messages ?? [];
}

/**
 * Refuses a custom state that is too large, or that no longer fits its schema after `updateCustom`: once saved, it could not be
 * loaded again. An unchanged state is not checked.
 */
async function checkState(invocation: InvocationState): Promise<void> {
  const { spec, working } = invocation;
  const { custom } = working.state;
  if (custom === undefined || !hasNewCustom(invocation)) return;
  // The state is saved with its hash, and hashing a document counts its characters.
  if (spec.store !== undefined) working.hash();
  checkCustomSize(custom, spec.limits.session?.customLength ?? maxCustomLength);
  if (spec.stateSchema === undefined) return;
  await parse(spec.stateSchema, custom, 'The custom state at the end of the turn');
}

/** Whether the turn has changed the custom state, which is then checked. */
function hasNewCustom({ working, lineage }: InvocationState): boolean {
  return working.state.custom !== lineage.fallbackState.custom;
}

async function withCheckedState(invocation: InvocationState, outcome: Outcome): Promise<Outcome> {
  // No session continues from a failed turn, or from a detached run that was stopped.
  const isLeft = outcome.kind === 'stopped' && invocation.run?.detached !== undefined;
  if (outcome.kind === 'failed' || outcome.kind === 'lost' || isLeft) return outcome;
  try {
    await checkState(invocation);
    return outcome;
  } catch (error) {
    return { kind: 'failed', error: toWaymarkError(error) };
  }
}

export function runningTurn(invocation: InvocationState): RunningTurn {
  const { turn, working, failures } = invocation;
  if (turn === undefined) throw new TypeError('No turn is running.');
  return {
    state: working.state,
    isContinued: turn.continued,
    firstIndex: turn.firstIndex,
    appendGenerated: (messages) => appendGenerated(invocation, turn, messages),
    reportPromptError: (error) => failures.report(error, 'prompt'),
    ...(invocation.spec.memory && {
      withMemory: (messages) => withMemory(invocation, messages),
    }),
  };
}

/** Adds the messages of a generate call that the turn has not added yet. A custom agent adds its own messages. */
function appendGenerated(
  invocation: InvocationState,
  turn: Turn,
  messages: readonly Message[],
): void {
  const { spec, working } = invocation;
  if (spec.recovery !== 'checkpoint') return;
  const fresh = messages.slice(turn.generated).map((message, at) =>
    // The first message of a resumed turn has what came of the answers.
    turn.input.resume !== undefined && !turn.continued && turn.generated + at === 0
      ? { ...message, metadata: { ...message.metadata, answered: answeredBy(invocation, turn) } }
      : message,
  );
  turn.generated = messages.length;
  if (fresh.length > 0) working.addMessages(fresh);
}

/** Who answered the interrupts of a turn, and when; without `by` if they expired. */
function answeredBy({ scope, host }: InvocationState, { input }: Turn): JsonObject {
  const at = new Date(host.clock.now()).toISOString();
  if (input.resume?.respond?.some(({ metadata }) => metadata?.expired === true))
    return { at, expired: true };
  return { at, ...(scope.owner !== undefined && { by: scope.owner }) };
}
