import type { ActionContext } from '../../core/action.ts';
import { invalid } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { checkChoice, checkOptions } from '../../core/options.ts';
import type { ToolContext } from './tool-context.ts';

/** The effect of a tool on other systems, where it is declared: nothing, or only a change of the workspace. */
export type ToolEffect = 'none' | 'workspace';

/** The call that is undone. */
export interface UndoCall<Input = Json, Output = Json> {
  /** The input that the call ran with, as it was approved. */
  readonly input: Input;
  /** The result of the call. */
  readonly output: Output;
  /** The same for every attempt to undo this call, and never the key of the call. Pass it to external services. */
  readonly idempotencyKey: string;
  /** Aborts when the undo takes too long, is stopped, or belongs to another process by now. */
  readonly signal: AbortSignal;
  /** The context of the caller who undoes. */
  readonly context: ActionContext;
}

/** Undoes a call. What it returns is ignored; if it throws, the call counts as not undone. */
export type UndoFunction<Input = Json, Output = Json> = (call: UndoCall<Input, Output>) => unknown;

/** How a call is undone, with the number of attempts and the time for each. */
export interface UndoOptions<Input = Json, Output = Json> {
  /** Undoes the call. */
  readonly run: UndoFunction<Input, Output>;
  /** How often it is tried before the restore fails. @default 1 */
  readonly attempts?: number;
  /** Milliseconds for one attempt. @default 60000 */
  readonly timeout?: number;
}

/** How a call is undone: a function, or one with options. */
export type Undo<Input = Json, Output = Json> =
  | UndoFunction<Input, Output>
  | UndoOptions<Input, Output>;

/** A declared undo with its defaults. */
export type UndoAction = Required<UndoOptions<never, never>>;

/** An undo with its defaults; INVALID_ARGUMENT if it is not one. `what` names it in the error. */
export function toUndoAction(given: Undo<never, never>, what: string): UndoAction {
  const options = typeof given === 'function' ? { run: given } : given;
  checkOptions(options, { run: 'function', attempts: 'number', timeout: 'number' }, what);
  const { run, attempts = 1, timeout = 60_000 } = options;
  if (typeof run !== 'function') {
    throw invalid(`${what} has no function. Pass one: undo: ({ output, idempotencyKey }) => ….`);
  }
  if (!Number.isInteger(attempts) || attempts < 1) {
    throw invalid(`The \`attempts\` of ${what} must be a whole number from 1.`);
  }
  if (!(timeout > 0))
    throw invalid(`The \`timeout\` of ${what} must be positive, in milliseconds.`);
  return { run, attempts, timeout };
}

/** The undo of a tool's options, checked together with its `effect`. */
export function checkUndo(options: {
  readonly name: string;
  readonly undo?: Undo<never, never>;
  readonly effect?: ToolEffect;
}): UndoAction | undefined {
  const { name, undo, effect } = options;
  if (effect !== undefined) {
    checkChoice(effect, ['none', 'workspace'], `\`effect\` of tool "${name}"`);
  }
  if (undo === undefined) return undefined;
  if (effect !== undefined) {
    throw invalid(
      `Tool "${name}" has \`effect: '${effect}'\` and \`undo\`. Drop one of them: a call without an effect has nothing to undo.`,
    );
  }
  return toUndoAction(undo, `\`undo\` of tool "${name}"`);
}

/** Records the effect of one call. */
export interface EffectHook {
  /** The function of the tool begins. With `undoable`, its input is stored first. */
  begin(tool: string, call: { readonly input: Json; readonly undoable: boolean }): Promise<void>;
  /** Stores the result of an undoable call. */
  end(output: Json): Promise<void>;
  /** The call was interrupted: it runs again when it is answered. */
  cancel(): Promise<void>;
}

const hookKey = Symbol('effect');

/** For the context of a call: who records its effect. */
export function withEffectHook(hook: EffectHook): object {
  return { [hookKey]: hook };
}

export function effectHookOf(context: ToolContext | undefined): EffectHook | undefined {
  return (context as { readonly [hookKey]?: EffectHook } | undefined)?.[hookKey];
}
