import { sha256 } from '../../core/json/hash.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { type EffectHook, withEffectHook } from '../../generate/tool/undo.ts';
import { ToolEffects } from '../../session/working-state.ts';
import type { Effect, EffectSupport, RunRef } from '../../store/contract/store.ts';
import type { InvocationState } from './invocation-state.ts';
import { markingLost } from './stop.ts';

/** Where the effects of an invocation are recorded: with the run of the session that it works for. */
interface EffectPlace {
  readonly effects: EffectSupport;
  readonly ref: RunRef;
  readonly invocation: InvocationState;
}

/** For the context of a tool call: records its effect under its idempotency key. */
export function effectRecorder(invocation: InvocationState, key: string): object {
  let effect: Effect | undefined;
  const hook: EffectHook = {
    async begin(tool, { input, undoable }) {
      const at = new Date(invocation.host.clock.now()).toISOString();
      const call = defined({ key, at, tool, agent: agentIn(invocation), input });
      ToolEffects.noteCall(invocation.working, call);
      if (undoable) effect = await beginEffect(invocation, call);
    },
    async end(output) {
      if (effect !== undefined) await endEffect(invocation, effect, output);
    },
    async cancel() {
      ToolEffects.dropCall(key);
      if (effect !== undefined) await replaceEffect(invocation, key, null);
      effect = undefined;
    },
  };
  return withEffectHook(hook);
}

/** Stores a call that can be undone before it runs. */
export async function beginEffect(invocation: InvocationState, effect: Effect): Promise<Effect> {
  const place = placeOf(invocation);
  if (place !== undefined) {
    await markingLost(place.invocation, () => place.effects.save(place.ref, effect.key, effect));
  }
  return effect;
}

/** Stores the result of a call. */
export function endEffect(
  invocation: InvocationState,
  effect: Effect,
  output: Json,
): Promise<void> {
  return replaceEffect(invocation, effect.key, { ...effect, output: [output] });
}

/** The call has been made whether this can be stored or not, so a failure is only reported. */
async function replaceEffect(
  invocation: InvocationState,
  key: string,
  effect: Effect | null,
): Promise<void> {
  const place = placeOf(invocation);
  if (place === undefined) return;
  const saved = markingLost(place.invocation, () => place.effects.save(place.ref, key, effect));
  await saved.catch((error: unknown) => place.invocation.failures.report(error, 'store'));
}

/** The key of a step: the same for every attempt at its run. */
export function stepKeyOf({ run }: InvocationState, name: string): string {
  return sha256(`step\n${run?.runId ?? ''}\n${name}`);
}

/** A sub-agent records its effects with the run of the agent that it works for, whose restore undoes them. */
function placeOf(invocation: InvocationState): EffectPlace | undefined {
  const root = rootOf(invocation);
  const { effects } = root.spec.store ?? {};
  const ref = root.run?.turnBase.run;
  return effects && ref && { effects, ref, invocation: root };
}

function rootOf(invocation: InvocationState): InvocationState {
  let root = invocation;
  for (let at = invocation.request.parent; at; at = at.request.parent) {
    if (at.spec.store !== undefined) root = at;
  }
  return root;
}

/** The agent that makes a call, if it is a sub-agent. */
export function agentIn(invocation: InvocationState): string | undefined {
  return rootOf(invocation) === invocation ? undefined : invocation.spec.name;
}
