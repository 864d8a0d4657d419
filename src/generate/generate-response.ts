import type { Json, JsonObject } from '../core/json/json.ts';
import type { InferSchema, Schema } from '../core/schema/schema.ts';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import { textOf } from '../protocol/messages/text.ts';
import { isInterrupted, toolRequestsOf } from '../protocol/messages/tool-round.ts';
import type { FinishReason, Usage } from '../protocol/turn.ts';
import type { Answer } from './call-model.ts';
import { parseOutput, type ResolvedOutput } from './output/output.ts';
import type { Progress } from './progress.ts';

/** The type of the output for an output schema; without one it is JSON, and plain text is a text. */
export type OutputOf<Output extends Schema | undefined> = Output extends Schema
  ? InferSchema<Output>
  : Json;

/** The result of a generate call. */
export interface GenerateResponse<Output = unknown> {
  /** The last message: the model's answer, or one with interrupted requests. */
  readonly message: Message;
  /** All messages the call added to the conversation, in order. */
  readonly messages: readonly Message[];
  /** The text of the last message. */
  readonly text: string;
  /** The structured output; there is none when the model did not come to its end, or asks for tools. */
  readonly output: Output | undefined;
  /** The unanswered tool requests of the last message. */
  readonly toolRequests: readonly ToolRequestPart[];
  /** Those of them that wait for an answer from outside. */
  readonly interrupts: readonly ToolRequestPart[];
  /** Why the model stopped. */
  readonly finishReason: FinishReason;
  /** The tokens of all model calls. */
  readonly usage: Usage;
  /** The name of the model that answered last. */
  readonly model: string;
  /** What the model did not do as told. */
  readonly warnings: readonly Json[];
  /** What else the provider said about the last answer. */
  readonly metadata: JsonObject;
}

/** The response for an answer of the model that ends the call. */
export async function finished(
  progress: Progress,
  answer: Answer,
  output: ResolvedOutput,
): Promise<GenerateResponse> {
  const { model, message, finishReason } = answer;
  const base = toResponse(model, progress, message, finishReason, answer);
  if (finishReason !== 'stop' || base.toolRequests.length > 0) return base;
  const { format, schema } = output;
  const parsed = schema ? await parseOutput(output, base.text) : format.parse(base.text);
  return { ...base, output: parsed };
}

/** The response when a tool waits for an answer from outside. */
export function interruptedResponse(
  model: string,
  progress: Progress,
  message: Message,
): GenerateResponse {
  return toResponse(model, progress, message, 'interrupted');
}

function toResponse(
  model: string,
  progress: Progress,
  message: Message,
  finishReason: FinishReason,
  { warnings = [], metadata = {} }: Partial<Answer> = {},
): GenerateResponse {
  const toolRequests = toolRequestsOf(message);
  return {
    message,
    messages: progress.whole(),
    text: textOf(message),
    output: undefined,
    toolRequests,
    interrupts: toolRequests.filter(isInterrupted),
    finishReason,
    usage: progress.usage,
    model,
    warnings,
    metadata,
  };
}
