import type { Json } from '../../core/json/json.ts';
import type { ToolCall } from '../recording/tool-calls.ts';

/** A tool call of a replay that a function of yours answers. */
export interface StubbedCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input of the call. */
  readonly input: Json;
  /** The recorded call of the same tool that has not been used yet, the one with the same input first. */
  readonly recorded?: ToolCall;
}

/**
 * How a tool is answered. `recorded`: as in the recording; a call that is not in it is not executed and gets an error. `live`: the
 * tool runs. A function answers in the place of the tool.
 */
export type ToolMode = 'recorded' | 'live' | ((call: StubbedCall) => unknown);

/** One mode for all tools, or one for each; `*` is the mode of those that are not named. @default 'recorded' */
export type ToolModes = 'recorded' | 'live' | Readonly<Record<string, ToolMode>>;

/** The mode of one tool. */
export function modeOf(modes: ToolModes, name: string): ToolMode {
  if (typeof modes === 'string') return modes;
  if (Object.hasOwn(modes, name)) return modes[name] ?? 'recorded';
  return modes['*'] ?? 'recorded';
}
