import { failedPrecondition, invalid, type WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { type DatesAsText, datesAsText, toJsonResult } from '../../core/json/dates.ts';
import { sha256 } from '../../core/json/hash.ts';
import { type Json, toJson } from '../../core/json/json.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Effect } from '../../store/contract/store.ts';
import type { UndoableStep } from '../contract/handler.ts';
import { agentIn, beginEffect, endEffect, stepKeyOf } from './effects.ts';
import type { InvocationState } from './invocation-state.ts';
import { markingLost } from './stop.ts';

/** Durable steps: recorded with the run if the store can, else kept only while the invocation lasts. */
export class Steps {
  readonly #invocation: InvocationState;
  readonly #known = new Map<string, { readonly result: Promise<unknown>; isDone: boolean }>();
  /** The keys of the steps that have failed, by their turn. */
  readonly #failed = new Map<string, Set<string>>();

  constructor(invocation: InvocationState) {
    this.#invocation = invocation;
  }

  /**
   * Runs the step with this key, or returns its result if an earlier attempt has run it. A second use within one attempt is
   * refused, because the caller of a loop would get the result of its first round each time. After the failure of another step,
   * it is a retry of both, and returns the result; `isRepeatable` always does.
   */
  async once<Value>(
    key: string,
    fn: () => Promise<Value> | Value,
    { isRepeatable = false, undoable }: { isRepeatable?: boolean; undoable?: UndoableStep } = {},
  ): Promise<DatesAsText<Value>> {
    if (undoable !== undefined) checkUndoable(this.#invocation, key, undoable);
    const { run } = this.#invocation;
    // Two inputs of one run may use the same key for different work.
    const input = run?.detached?.inputsDone ?? 0;
    const name = `${input}:${key}`;
    const turn = `${run?.runId ?? ''}:${input}`;
    const id = `${turn}:${key}`;
    const before = this.#known.get(id);
    if (before?.isDone === false) throw inUse(key);
    if (before !== undefined && !isRepeatable && !this.#mayRetry(turn, key)) throw usedBefore(key);
    if (before !== undefined) return (await before.result) as DatesAsText<Value>;
    const result = performStep(this.#invocation, { key, name, undoable }, fn);
    const step = { result, isDone: false };
    this.#known.set(id, step);
    try {
      return await result;
    } catch (error) {
      // A failed step may be retried.
      this.#known.delete(id);
      getOrMake(this.#failed, turn, () => new Set()).add(key);
      throw error;
    } finally {
      step.isDone = true;
    }
  }

  /** Whether a step that is done may be part of a retry. Its own failures came before its success. */
  #mayRetry(turn: string, key: string): boolean {
    return [...(this.#failed.get(turn) ?? [])].some((failed) => failed !== key);
  }
}

function inUse(key: string): WaymarkError {
  return failedPrecondition(
    `Step "${key}" is running already. Give each step of a run its own key, or await the first one.`,
  );
}

function usedBefore(key: string): WaymarkError {
  return failedPrecondition(
    `Step "${key}" has succeeded in this turn already. To use its result again, keep it. For other work, give each step its own key; in a loop, put the index or an id into it: \`${key}-\${index}\`.`,
  );
}

async function performStep<Value>(
  invocation: InvocationState,
  {
    key,
    name,
    undoable,
  }: { readonly key: string; readonly name: string; readonly undoable?: UndoableStep | undefined },
  fn: () => Promise<Value> | Value,
): Promise<DatesAsText<Value>> {
  const { spec, run } = invocation;
  const runs = spec.store?.runs;
  const ref = run?.turnBase.run;
  if (runs === undefined || ref === undefined) return datesAsText(await fn());
  const recorded = await markingLost(invocation, () => runs.getStep(ref, name));
  // The recorded value is what `fn` returned, as JSON.
  if (recorded !== undefined) return recorded.value as DatesAsText<Value>;
  const effect = undoable && (await beginStep(invocation, name, undoable));
  const value = await fn();
  const json: Json | undefined =
    value === undefined ? undefined : toJsonResult(value, `The result of step "${key}"`);
  if (effect !== undefined) await endEffect(invocation, effect, json ?? null);
  await markingLost(invocation, () => runs.saveStep(ref, name, json));
  run?.onProgress?.();
  return json as DatesAsText<Value>;
}

function checkUndoable({ spec }: InvocationState, key: string, { undo }: UndoableStep): void {
  if (spec.undo?.has(undo)) return;
  throw invalid(
    `Step "${key}" names the undo function "${String(undo)}", which agent "${spec.name}" does not declare: undo: { ${String(undo)}: ({ output }) => … }.`,
  );
}

function beginStep(
  invocation: InvocationState,
  name: string,
  { undo: tool, input = null }: UndoableStep,
): Promise<Effect> {
  const at = new Date(invocation.host.clock.now()).toISOString();
  const agent = agentIn(invocation);
  const key = stepKeyOf(invocation, name);
  const given = toJson(input, `The input of step "${name}"`);
  return beginEffect(invocation, { key, tool, input: given, at, ...(agent && { agent }) });
}

/**
 * A key for the effects of one tool call, the same for every attempt at its run. It is made of the run, the number of messages that
 * are not from the user, the tool, and how often the model asked for the tool in this message. User messages are left out, because a
 * second attempt may take a steered message earlier. The provider's id of the request is left out, because a second attempt asks the
 * model again and gets new ids. If the client holds the state, an answer to an
 * interrupt that is sent twice makes two runs, so the answered state is used instead of the run.
 */
export function idempotencyKeyOf(invocation: InvocationState, tool: string): string {
  const { run, turn, working, position } = invocation;
  const origin = turn?.answeredKey ?? run?.runId ?? position.sessionId;
  const { history } = working.state;
  const place = `${origin}\n${history.length - history.countUserMessages()}\n${tool}`;
  const count = turn?.toolKeys?.get(place) ?? 0;
  if (turn !== undefined) turn.toolKeys = (turn.toolKeys ?? new Map()).set(place, count + 1);
  return sha256(`${place}\n${count}`);
}

/** Whether a session is that of a sub-agent in the foreground: its id is the key of the tool call that it works on. */
export function isInForeground({
  sessionId,
  startedBy,
}: Pick<SessionInfo, 'sessionId' | 'startedBy'>): boolean {
  return startedBy !== undefined && /^[0-9a-f]{64}$/.test(sessionId);
}
