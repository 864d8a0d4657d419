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
    appendGenerated: (messages) => appendGenerated(invocation, turn, messages),
    reportPromptError: (error) => failures.report(error, 'prompt'),
  };
}

/** Adds the messages of a generate call that the turn has not added yet. A custom agent adds its own messages. */
export function appendGenerated(
  { spec, working }: InvocationState,
  turn: Turn,
  messages: readonly Message[],
): void {
  if (spec.recovery !== 'checkpoint') return;
  const fresh = messages.slice(turn.generated);
  turn.generated = messages.length;
  if (fresh.length > 0) working.addMessages(fresh);
}
