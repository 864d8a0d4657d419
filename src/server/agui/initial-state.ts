import { internalsOf } from '../../agent/define/create-agent.ts';
import { transformState } from '../../agent/persistence/transform.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { Json } from '../../core/json/json.ts';
import type { State } from '../../protocol/state.ts';

/** The custom state that clients see: that of the thread, or the agent's initial one if the thread has not begun. */
export function shownCustom(agent: Agent, state: State | undefined): Json | undefined {
  if (state !== undefined) return state.custom as Json | undefined;
  const { initialState, transform } = internalsOf(agent).spec;
  if (initialState === undefined) return undefined;
  return transformState(transform, { custom: initialState })?.custom as Json | undefined;
}
