import { toWaymarkError } from '../core/error.ts';
import { inSpan, type Span } from '../core/trace.ts';
import { genAi, attributes as names } from '../core/trace-names.ts';
import { generateHooks } from '../generate/hooks.ts';
import { closeToolRequests, pendingInterrupts } from '../generate/open-requests.ts';
import { addUsage } from '../generate/usage.ts';
import type { TurnFunction, TurnResult } from './handler.ts';
import type { Invocation } from './invocation.ts';
import { checkpointTurn, endTurn } from './saving.ts';
import { checkUsage, startTimeLimit } from './turn-limits.ts';
import { lastRound, type Outcome, type Turn } from './turn-state.ts';

/** Accepts the next input, works on it and saves what came of it. */
export async function runTurn(invocation: Invocation, fn: TurnFunction): Promise<Outcome> {
  const turn = await invocation.nextTurn();
  const outcome = await inTurnSpan(invocation, turn, async (span) => {
    const result = await perform(invocation, turn, fn);
    if (result.kind === 'stopped') keepPartialAnswer(invocation);
    if (result.kind === 'failed') span.recordError(result.error);
    return await endTurn(invocation, turn, result, span);
  });
  return outcome;
}

async function perform(invocation: Invocation, turn: Turn, fn: TurnFunction): Promise<Outcome> {
  const { control, spec } = invocation;
  const endTimeLimit = startTimeLimit(invocation, spec.limits.turn?.timeMs);
  try {
    const work = generateHooks.run(hooksOf(invocation, turn), async () =>
      fn(turn.input, turn.info),
    );
    const result = (await invocation.untilStopped(work)) ?? {};
    if (control.cause === undefined) return done(invocation, turn, result);
  } catch (error) {
    if (control.cause === undefined) return { kind: 'failed', error: toWaymarkError(error) };
  } finally {
    endTimeLimit();
  }
  const { cause } = control;
  switch (cause?.kind) {
    case 'failed':
      return { kind: 'failed', error: cause.error };
    case 'lost':
      return { kind: 'lost' };
    default:
      return { kind: 'stopped' };
  }
}

function done(invocation: Invocation, turn: Turn, result: TurnResult): Outcome {
  const { finishReason, output, usage } = result;
  turn.usage = addUsage(turn.usage, usage);
  const waits = pendingInterrupts(lastRound(invocation.working.state.history)).length > 0;
  return {
    kind: 'done',
    finishReason: finishReason ?? (waits ? 'interrupted' : 'stop'),
    ...(output !== undefined && { output }),
  };
}

function hooksOf(invocation: Invocation, turn: Turn): Parameters<typeof generateHooks.run>[0] {
  return {
    onModelCall: ({ usage }) => {
      turn.usage = addUsage(turn.usage, usage);
      checkUsage(invocation, turn);
    },
    onToolIteration: async ({ messages }) => {
      invocation.absorb(messages);
      turn.toolCalls += messages.at(-1)?.content.length ?? 0;
      checkUsage(invocation, turn);
      await checkpointTurn(invocation, turn);
    },
  };
}

/** After a stop: what was said so far becomes the answer, and no tool request stays open, so that any provider takes it. */
function keepPartialAnswer({ working, partial }: Invocation): void {
  const answer = partial.message();
  if (answer !== undefined) working.addMessages([answer]);
  const closing = closeToolRequests(lastRound(working.state.history), 'aborted');
  if (closing !== undefined) working.addMessages([closing]);
}

function inTurnSpan<Value>(
  { spec, sessionId }: Invocation,
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
