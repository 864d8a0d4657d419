import type { ActionContext } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import { toJsonResult } from '../../core/json/dates.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import type { Tool } from './tool.ts';
import {
  type ApprovalState,
  approvalProgress,
  type ToolContext,
  unrecorded,
} from './tool-context.ts';

/** The outcome of a tool call: its result, or its question to the user. */
export type ToolAttempt =
  | { readonly output: Json; readonly content: readonly JsonObject[] }
  | { readonly interrupted: Json };

export interface ToolOnceOptions {
  readonly ref: string;
  readonly signal?: AbortSignal;
  /** The caller's context. @default {} */
  readonly context?: ActionContext;
  /** The question of the call before this one, and the answer. */
  readonly answer?: { readonly interrupted: Json; readonly resumed: Json } | undefined;
  /** Additions to the context, such as the session. */
  readonly extras?: object;
  readonly stream?: ToolContext['stream'];
}

/** Calls a tool outside of a conversation, without the middleware of an agent. An interrupt is a result, so that a person can answer it. */
export async function runToolOnce(
  tool: Tool,
  input: unknown,
  options: ToolOnceOptions,
): Promise<ToolAttempt> {
  const { ref, context = {}, answer, extras, stream = () => {} } = options;
  const { signal = new AbortController().signal } = options;
  const content: JsonObject[] = [];
  let asked: Json | undefined;
  const toolContext: ToolContext = {
    signal,
    ref,
    context,
    resumed: answer?.resumed,
    interrupted: answer?.interrupted,
    idempotencyKey: ref,
    checkpoint: unrecorded,
    attach: (...parts) => void content.push(...parts),
    stream,
    interrupt(data = true) {
      asked = toJson(data, `What tool "${tool.name}" interrupts with`);
      throw new WaymarkError('CANCELLED', `Tool "${tool.name}" waits for an answer.`);
    },
    ...extras,
    ...approvalProgress({ state: approvalBefore(answer?.interrupted), set() {} }),
  };
  if (answer) await tool.checkResumed?.(answer.resumed, answer.interrupted);
  try {
    const output = toJsonResult(
      await tool.run(input, toolContext),
      `The output of tool "${tool.name}"`,
    );
    // An interrupt counts even if the tool caught it.
    return asked === undefined ? { output, content } : { interrupted: asked };
  } catch (error) {
    if (asked === undefined) throw error;
    return { interrupted: asked };
  }
}

// A call that asked its own question was approved before, or needs no approval.
function approvalBefore(interrupted: Json | undefined): ApprovalState | undefined {
  if (interrupted === undefined) return undefined;
  return isJsonObject(interrupted) && 'approval' in interrupted ? 'asked' : 'given';
}
