import type { TurnInput } from '../../api/turn-values.ts';
import type { App } from '../../app.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { ReplayOptions } from '../../replay/options.ts';

/** The app of a crash test, or a function that creates it, as a new process does: state in variables is then lost in a crash. */
export type AppSource = App | (() => App | Promise<App>);

/** Options of a crash test. */
export interface CrashTestOptions {
  /** The name of the agent. @default the only agent of the app */
  readonly agent?: string;
  /** The input of the turn that is interrupted. */
  readonly input?: TurnInput;
  /** Recorded sessions, whose turns are interrupted instead, as in `replay`. */
  readonly sessions?: ReplayOptions['sessions'];
  /** The model of the agent. @default the agent's; with `sessions` the recorded answers */
  readonly model?: ModelRef;
  /**
   * How the tools of recorded sessions are answered, as in `replay`. With `input`, the tools run.
   * @default 'recorded'
   */
  readonly tools?: ReplayOptions['tools'];
  /** The caller's context. @default {} */
  readonly context?: JsonObject;
  /**
   * The effects that other systems have seen so far, such as the charges of a fake payment service.
   * @default each call of a tool that does not use its `idempotencyKey` and is not declared as repeatable, and each HTTP request outside of
   * tools and models
   */
  readonly effects?: () => readonly unknown[];
  /** Called before each run, to reset fakes of other systems. */
  readonly reset?: () => void | Promise<void>;
  /** Paths whose values may differ, such as `/custom/orderNumber`. */
  readonly ignore?: readonly string[];
  /** Milliseconds that a turn may take. @default 10000 */
  readonly timeout?: number;
  /** Stops the crash test after the current run. */
  readonly signal?: AbortSignal;
  /** Called after each crash point. */
  readonly onProgress?: (progress: { readonly done: number; readonly of: number }) => void;
}

export const crashTestOptionNames: OptionNames<CrashTestOptions> = {
  agent: 'text',
  input: ['text', 'list', 'object'],
  sessions: true,
  model: ['text', 'object'],
  tools: ['text', 'object'],
  context: 'object',
  effects: 'function',
  reset: 'function',
  ignore: 'list',
  timeout: 'number',
  signal: 'object',
  onProgress: 'function',
};
