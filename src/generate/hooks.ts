import type { ActionContext } from '../core/action.ts';
import type { Json } from '../core/json/json.ts';
import { type ContextKey, createContextKey } from '../core/platform.ts';
import type { Message, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import type { ToolRecord } from '../protocol/tool-record.ts';
import type { FinishReason, Usage } from '../protocol/turn.ts';
import type { Model, ModelCall, ModelRef, ModelRequest, ModelResponse } from './model.ts';
import type { Tool } from './tool/tool.ts';
import type { ToolContext } from './tool/tool-context.ts';

/** The progress of a generate call. */
export interface GenerateProgress {
  /** The messages it has added so far, in order. */
  readonly messages: readonly Message[];
  /** The tokens of its model calls so far. */
  readonly usage: Usage;
}

/** A model call that is about to be made. */
export interface PendingCall {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
}

/** A model call that has ended well. */
interface ModelCallReport {
  readonly model: string;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  /** The reservation of `beforeModelCall`. */
  readonly reservation: string | undefined;
}

/** Records what one tool call does to the session around it. */
export interface ToolRecorder {
  run<Value>(fn: () => Value): Value;
  /** The effects of the call; `undefined` if it has none. */
  record(): ToolRecord | undefined;
  /** When it first changed something, as a number that grows. */
  readonly firstChange: number | undefined;
}

/** Hooks of the layers above into every generate call inside them. An error that a hook throws ends the call. */
export interface GenerateHooks {
  /**
   * Called when all tools of one model message are done, before the model is called again. The messages that it returns are
   * added to the conversation.
   */
  readonly onToolIteration?: (
    progress: GenerateProgress,
  ) => readonly Message[] | void | Promise<readonly Message[] | void>;
  /** Called for each tool call of the conversation; a call inside a tool belongs to that tool. */
  readonly recordTool?: (() => ToolRecorder) | undefined;
  /**
   * Called before each model call, each attempt of one and those made inside tools included. What it throws prevents the call. It
   * may give the id of a reservation, which `onModelCall` or `onModelCallFailed` gets when the call has ended.
   */
  readonly beforeModelCall?: (call: PendingCall) => undefined | Promise<string | undefined>;
  /** Called when a call with a reservation has ended without an answer. */
  readonly onModelCallFailed?: (reservation: string) => Promise<void>;
  /** Called after each model call that was answered, also those made inside tools. */
  readonly onModelCall?: (report: ModelCallReport) => void | Promise<void>;
  /** The messages as traces may show them; absent: not at all. */
  readonly showMessages?: ((messages: readonly Message[]) => readonly Message[]) | undefined;
  /** Called when an answer is among the messages of its generate call. */
  readonly onAnswer?: () => void;
  /** Called when a model call, a tool or a tool source has failed, also inside tools. The error is handled as usual. */
  readonly onFailure?: (error: unknown, subject: FailureSubject) => void;
}

type FailureSubject = {
  readonly model?: string;
  readonly tool?: string;
  readonly toolSource?: string;
};

/** The ambient settings of a generate call, which your handlers and tools do not pass on. */
export interface GenerateScope {
  readonly hooks?: GenerateHooks | undefined;
  /** The caller's context, for calls without a `context` of their own. */
  readonly context?: ActionContext | undefined;
  /** The model that the caller of the turn wants, for calls that name none. Tools are not part of what the caller overrides. */
  readonly model?: ModelRef | undefined;
}

/** The scope of the generate calls inside it. */
export const generateScope: ContextKey<GenerateScope> = createContextKey('generate scope');

/**
 * Runs a tool so that a generate call inside it counts its tokens, but is no iteration of the conversation around it, and uses its
 * own model.
 */
export function insideTool<T>(fn: () => T): T {
  const { hooks, context, model } = generateScope.get() ?? {};
  if (!hooks?.onToolIteration && !hooks?.recordTool && model === undefined) return fn();
  const { onToolIteration: _, recordTool: __, ...inside } = hooks ?? {};
  return generateScope.run({ hooks: inside, context }, fn);
}

/** The result of a tool call, or the request that waits for an answer. */
export type ToolOutcome =
  | { readonly response: ToolResponsePart }
  | { readonly interrupted: ToolRequestPart };

/** A tool call that is about to run. */
export interface ReplayedCall {
  readonly request: ToolRequestPart;
  /** There when the call was restarted after an interrupt. */
  readonly resumed?: Json | undefined;
}

/** Answers tool calls in place of the tools. */
export interface ToolReplay {
  /** The answer to a call; `undefined` lets the tool run. */
  answer(call: ReplayedCall): ToolOutcome | undefined | Promise<ToolOutcome | undefined>;
  /** All calls of one model message are answered. */
  endRound(): void;
  /** A generate call has begun, with this model or with the app's. */
  onGenerate(model: ModelRef | undefined): void;
}

/** Set while a recorded session is replayed. Every generate call inside asks it first, whichever app it belongs to. */
export const toolReplay: ContextKey<ToolReplay> = createContextKey('waymark.toolReplay');

/** Stands between an agent and its models and tools, for tests that interrupt a run there. */
export interface CallProbe {
  /** `run` makes the model call. */
  model(
    call: PendingCall & { readonly stream: ModelCall['stream'] },
    run: () => Promise<ModelResponse>,
  ): Promise<ModelResponse>;
  /** `run` calls the tool with a context, which is the given one or wraps it. */
  tool(
    call: { readonly tool: Tool; readonly input: Json | undefined; readonly context: ToolContext },
    run: (context: ToolContext) => Promise<unknown>,
  ): Promise<unknown>;
}

/** Set while a crash test runs an agent. */
export const callProbe: ContextKey<CallProbe> = createContextKey('waymark.callProbe');
