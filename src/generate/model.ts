import { invalid } from '../core/error.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { JsonSchema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { Cost, FinishReason, ModelChunk, Usage } from '../protocol/turn.ts';
import type { LanguageModel } from './language-model/types.ts';

/** Settings of a model call; a model takes those it knows and passes over the rest. */
export interface ModelConfig {
  /** Sampling temperature. */
  readonly temperature?: number;
  /** Maximum number of tokens in the answer. */
  readonly maxOutputTokens?: number;
  /** Nucleus sampling: cumulative probability of the tokens to sample from. */
  readonly topP?: number;
  /** Samples only from this number of most likely tokens. */
  readonly topK?: number;
  /** Penalty for tokens that occurred before. */
  readonly presencePenalty?: number;
  /** Penalty for tokens by how often they occurred. */
  readonly frequencyPenalty?: number;
  /** Sequences at which the model stops. */
  readonly stopSequences?: readonly string[];
  /** Seed for reproducible output. */
  readonly seed?: number;
  /** Reasoning effort, for models that support it. */
  readonly reasoning?: string;
  /**
   * Marks the parts of the prompt that stay the same, for providers that cache only what is marked: Anthropic and Bedrock, and
   * Claude on OpenRouter and Vercel's AI Gateway. `'1h'` keeps them for an hour. @default true
   */
  readonly cache?: boolean | '1h';
  /** Provider-specific options, by provider: `{ anthropic: { … } }`. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  /** Additional HTTP headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly [setting: string]: unknown;
}

/** A tool as a model sees it. */
export interface ToolDefinition {
  /** The name of the tool. */
  readonly name: string;
  /** The purpose of the tool. */
  readonly description?: string;
  /** JSON Schema of the input. */
  readonly inputSchema: JsonSchema;
  /** JSON Schema of the output. */
  readonly outputSchema?: JsonSchema;
  /** A tool that the provider itself brings, such as its web search. */
  readonly provider?: { readonly id: string; readonly args: JsonObject };
}

/** Whether the model may, must or must not ask for tools, or which one it must ask for. */
export type ToolChoice = 'auto' | 'required' | 'none' | { readonly tool: string };

/** The form a model's answer should have. */
interface OutputRequest {
  /** The name of the format. */
  readonly format: string;
  /** The content type of the text. */
  readonly contentType?: 'application/json';
  /** JSON Schema of the answer's text; a model that can, keeps to it. */
  readonly schema?: JsonSchema;
}

/** The request to a model. */
export interface ModelRequest {
  /** The conversation, with the system prompt first. */
  readonly messages: readonly Message[];
  /** The tools that the model can call. */
  readonly tools: readonly ToolDefinition[];
  /** Whether the model may or must call tools. */
  readonly toolChoice?: ToolChoice;
  /** Settings of the model. */
  readonly config?: ModelConfig;
  /** The form of the answer. */
  readonly output?: OutputRequest;
}

/** The response of a model. */
export interface ModelResponse {
  /** The answer. */
  readonly message: Message;
  /** Why the model stopped. */
  readonly finishReason: FinishReason;
  /** Tokens of the call. */
  readonly usage?: Usage;
  /** Instructions that the model did not follow, such as a setting that it does not have. */
  readonly warnings?: readonly Json[];
  /** Other facts from the provider about this answer, such as its own id for it. */
  readonly metadata?: JsonObject;
}

/** The second argument of a model's function. */
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

/** Options of a model. */
export interface ModelOptions {
  /** The name, unique in the app. */
  readonly name: string;
  /** A description for users. */
  readonly description?: string;
  /** The provider of the model, for traces and prices. */
  readonly provider?: string;
  /** The provider's own name of the model, for traces and prices. @default the name */
  readonly modelId?: string;
  /** The price of a call. @default the app's `price` */
  readonly price?: (usage: Usage) => Cost | undefined;
  /**
   * Whether the model supports `request.output.schema` natively. If not, the schema is described in the prompt.
   * @default false
   */
  readonly constrainsOutput?: boolean;
}

/** A model that can be called. */
export interface Model extends ModelOptions {
  /** Calls the model. */
  readonly run: ModelRunner;
  /** Throws if the model cannot be called, such as without an API key. Agents ask before they accept a turn. */
  readonly check?: () => void;
}

/**
 * How a model is named where one is wanted: a registered name, a model, or an AI SDK language model as it is. Definitions of apps,
 * agents and prompts also accept the name of a provider's model, such as `openai/gpt-5`; its package must be installed.
 */
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
  if (typeof run === 'function') return { ...options, run };
  throw invalid(
    `Model "${options.name}" has no function. Pass it, or an AI SDK language model, as the second argument.`,
  );
}
