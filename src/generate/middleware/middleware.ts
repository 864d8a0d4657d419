import type { Json } from '../../core/json/json.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { Model, ModelCall, ModelRef, ModelRequest, ModelResponse } from '../model.ts';
import type { Tool } from '../tool/tool.ts';
import type { ToolContext } from '../tool/tool-context.ts';

/** A model call on its way through the middleware. */
export interface ModelStep {
  /** The model to call. */
  readonly model: Model;
  /** What it is asked. */
  readonly request: ModelRequest;
  /** The signal and the stream of the call. */
  readonly call: ModelCall;
  /** Whether a reader has seen some of this answer already, so that starting over would say it twice. */
  hasStreamed(): boolean;
  /** The model under a name, or an AI SDK model as one of ours. */
  resolveModel(ref: ModelRef): Model;
  /** The clock of the app. */
  readonly clock: Clock;
}

/** A tool call on its way through the middleware. */
export interface ToolStep {
  /** The tool to call. */
  readonly tool: Tool;
  /** The request of the model. */
  readonly request: ToolRequest;
  /** What the tool gets besides its input. */
  readonly context: ToolContext;
}

/** Wraps every model call and every tool call. Each hook calls `next` to continue, and may change the step. */
export interface Middleware {
  /** The name. */
  readonly name?: string;
  /** The tools that it names. One that does not exist is refused when the agent is defined or gets ready, and before a turn. */
  readonly tools?: readonly string[];
  /** The models that it names. One that does not exist is refused when the app gets ready, and before a turn. */
  readonly models?: readonly ModelRef[];
  /** Wraps each model call. */
  readonly model?: (
    step: ModelStep,
    next: (step: ModelStep) => Promise<ModelResponse>,
  ) => Promise<ModelResponse>;
  /** Wraps each tool call. */
  readonly tool?: (step: ToolStep, next: (step: ToolStep) => Promise<Json>) => Promise<Json>;
}

/** The model calls of all middleware as one, the first outermost. */
export function composeModel(
  use: readonly Middleware[],
  last: (step: ModelStep) => Promise<ModelResponse>,
): (step: ModelStep) => Promise<ModelResponse> {
  return use.reduceRight((next, { model }) => (model ? (step) => model(step, next) : next), last);
}

/** The tool calls of all middleware as one, the first outermost. */
export function composeTool(
  use: readonly Middleware[],
  last: (step: ToolStep) => Promise<Json>,
): (step: ToolStep) => Promise<Json> {
  return use.reduceRight((next, { tool }) => (tool ? (step) => tool(step, next) : next), last);
}
