import type { JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { RunningTurn } from '../spec/handler.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Turn } from './turn-state.ts';

/** The running turn, as the prompt agent works with it. */
export function runningTurn(invocation: InvocationState): RunningTurn {
  const { turn, working, failures } = invocation;
  if (turn === undefined) throw new TypeError('No turn is running.');
  return {
    state: working.state,
    isContinued: turn.continued,
    firstIndex: turn.firstIndex,
    appendGenerated: (messages) => appendGenerated(invocation, turn, messages),
    reportPromptError: (error) => failures.report(error, 'prompt'),
  };
}

/** Adds the messages of a generate call that the turn has not added yet. A custom agent adds its own messages. */
export function appendGenerated(
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
