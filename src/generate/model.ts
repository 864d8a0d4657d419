import type { Json, JsonObject } from '../core/json/json.ts';
import type { JsonSchema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { FinishReason, ModelChunk, Usage } from '../protocol/turn.ts';
import type { LanguageModel } from './language-model/types.ts';

/** Settings of a model call; a model takes those it knows and passes over the rest. */
export interface ModelConfig {
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly stopSequences?: readonly string[];
  readonly seed?: number;
  /** Reasoning effort, for models that support it. */
  readonly reasoning?: string;
  /** Provider-specific options, by provider: `{ anthropic: { … } }`. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  /** Additional HTTP headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly [setting: string]: unknown;
}

/** A tool as a model sees it. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
  /** A tool that the provider itself brings, such as its web search. */
  readonly provider?: { readonly id: string; readonly args: JsonObject };
}

/** Whether the model may, must or must not ask for tools, or which one it must ask for. */
export type ToolChoice = 'auto' | 'required' | 'none' | { readonly tool: string };

/** The form a model's answer should have. */
export interface OutputRequest {
  readonly format: string;
  readonly contentType?: 'application/json';
  /** JSON Schema of the answer's text; a model that can, keeps to it. */
  readonly schema?: JsonSchema;
}

/** What a model is asked. */
export interface ModelRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice?: ToolChoice;
  readonly config?: ModelConfig;
  readonly output?: OutputRequest;
}

/** What a model answers. */
export interface ModelResponse {
  readonly message: Message;
  readonly finishReason: FinishReason;
  readonly usage?: Usage;
  /** What the model did not do as told, such as a setting it does not have. */
  readonly warnings?: readonly Json[];
  /** What else the provider said about this answer, such as its own id for it. */
  readonly metadata?: JsonObject;
}

/** What a model call gets along with its request. */
export interface ModelCall {
  /** Hands out a piece of the answer as it comes; a returned promise asks the model to wait for a slow reader. */
  stream(chunk: ModelChunk): void | Promise<void>;
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /** The caller's context. */
  readonly context: Readonly<Record<string, unknown>>;
}

/** The function that is a model. */
export type ModelRunner = (request: ModelRequest, call: ModelCall) => Promise<ModelResponse>;

/** What is said about a model when it is defined. */
export interface ModelOptions {
  readonly name: string;
  readonly description?: string;
  /** The provider of the model, for traces. */
  readonly provider?: string;
  /**
   * Whether the model supports `request.output.schema` natively. If not, the schema is described in the prompt.
   * @default false
   */
  readonly constrainsOutput?: boolean;
}

/** A model that can be called. */
export interface Model extends ModelOptions {
  readonly run: ModelRunner;
}

/** How a model is named where one is wanted: a registered name, a model, or an AI SDK language model as it is. */
export type ModelRef = string | Model | LanguageModel;

/**
 * Creates a model from a function.
 *
 * @example
 * const echo = model({ name: 'echo' }, async ({ messages }) => ({
 *   message: { role: 'model', content: messages.at(-1)?.content ?? [] },
 *   finishReason: 'stop',
 * }));
 */
export function model(options: ModelOptions, run: ModelRunner): Model {
  return { ...options, run };
}
