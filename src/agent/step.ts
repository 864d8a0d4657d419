import { type Json, toJson } from '../core/json.ts';
import type { Invocation } from './invocation.ts';
import { fullStore } from './spec.ts';
import { underRun } from './store-away.ts';

/** Durable steps: recorded with the run where the store can, else only for the life of the invocation. */
export class Steps {
  readonly #invocation: Invocation;
  readonly #known = new Map<string, Promise<unknown>>();

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
  }

  /** The result of the step under this key, which is done now if it was not done before. */
  once<Value>(key: string, fn: () => Promise<Value> | Value): Promise<Value> {
    const { run } = this.#invocation;
    // Two inputs of one run may use the same key for different work.
    const name = `${run?.detached?.inputsDone ?? 0}:${key}`;
    const id = `${run?.runId ?? ''}:${name}`;
    const before = this.#known.get(id);
    if (before !== undefined) return before as Promise<Value>;
    const result = perform(this.#invocation, name, fn);
    this.#known.set(id, result);
    // A step that failed may be tried again.
    result.catch(() => this.#known.delete(id));
    return result;
  }
}

async function perform<Value>(
  invocation: Invocation,
  name: string,
  fn: () => Promise<Value> | Value,
): Promise<Value> {
  const { spec, run } = invocation;
  const runs = fullStore(spec)?.runs;
  const ref = run?.position.run;
  if (runs === undefined || ref === undefined) return await fn();
  const recorded = await underRun(invocation, () => runs.getStep(ref, name));
  // What was recorded is what `fn` returned, as JSON.
  if (recorded !== undefined) return recorded.value as Value;
  const value = await fn();
  const json: Json | undefined =
    value === undefined ? undefined : toJson(value, `The result of step "${name}"`);
  await underRun(invocation, () => runs.saveStep(ref, name, json));
  return json as Value;
}
