import type { ActionContext } from '../core/action.ts';
import { type ContextKey, createContextKey } from '../core/async/context.ts';
import type { Message } from '../protocol/message.ts';
import type { FinishReason, Usage } from '../protocol/turn.ts';

/** How far a generate call has come. */
export interface GenerateProgress {
  /** The messages it has added so far, in order. */
  readonly messages: readonly Message[];
  /** The tokens of its model calls so far. */
  readonly usage: Usage;
}

/** A model call that has ended well. */
interface ModelCallReport {
  readonly model: string;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}

/** What the layers above want to hear of every generate call inside them. What a hook throws ends the call. */
export interface GenerateHooks {
  /** Called when all tools of one model message are done, before the model is called again. */
  readonly onToolIteration?: (progress: GenerateProgress) => void | Promise<void>;
  /** Called before each model call, also those made inside tools. */
  readonly beforeModelCall?: () => void;
  /** Called after each model call, also those made inside tools. */
  readonly onModelCall?: (report: ModelCallReport) => void | Promise<void>;
  /** Called when a model call, a tool or a tool source has failed, also inside tools. The error is handled as usual. */
  readonly onFailure?: (error: unknown, subject: FailureSubject) => void;
}

/** What failed. */
type FailureSubject = {
  readonly model?: string;
  readonly tool?: string;
  readonly toolSource?: string;
};

/** What a generate call takes from the code around it: your handlers and tools do not pass it on. */
export interface GenerateScope {
  readonly hooks?: GenerateHooks | undefined;
  /** The caller's context, for calls without a `context` of their own. */
  readonly context?: ActionContext | undefined;
}

/** The scope of the generate calls inside it. */
export const generateScope: ContextKey<GenerateScope> = createContextKey('generate scope');

/** Runs a tool so that a generate call inside it counts its tokens, but is no iteration of the conversation around it. */
export function insideTool<T>(fn: () => T): T {
  const { hooks, context } = generateScope.get() ?? {};
  if (!hooks?.onToolIteration) return fn();
  const { onToolIteration: _, ...inside } = hooks;
  return generateScope.run({ hooks: inside, context }, fn);
}
