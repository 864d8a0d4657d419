import { type ContextKey, createContextKey } from '../../core/async/context.ts';
import { sha256 } from '../../core/json/hash.ts';
import type { InvocationState } from './invocation-state.ts';

/** The invocation whose turn the running code belongs to. */
export const invocationKey: ContextKey<InvocationState> = createContextKey('waymark.invocation');

/**
 * A key for the effects of one tool call, the same for every attempt at its run: made of the run, the length of the
 * conversation, the tool and how often the model asked for it in this message. What the provider calls the request is left
 * out, because a second attempt asks the model again and gets new names. When the client holds the state, an answer to an
 * interrupt that is sent twice makes two runs: then the answered state stands in for the run.
 */
export function idempotencyKeyOf(invocation: InvocationState, tool: string): string {
  const { run, turn, working } = invocation;
  const origin = turn?.answeredKey ?? run?.runId ?? invocation.position.sessionId;
  const place = `${origin}\n${working.state.history.length}\n${tool}`;
  const count = turn?.toolKeys.get(place) ?? 0;
  turn?.toolKeys.set(place, count + 1);
  return sha256(`${place}\n${count}`);
}
