import type { Json, JsonObject } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';

// The part of the AI SDK's provider specification (v2, v3 and v4) that is used here, written down structurally: a
// model of any provider package fits without that package, or the specification itself, being a dependency of ours.

/** A language model of an AI SDK provider package, specification v2, v3 or v4. */
export interface LanguageModel {
  /** The version of the provider specification. */
  readonly specificationVersion: 'v2' | 'v3' | 'v4';
  /** The provider's name. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly modelId: string;
  /** `never` because each version of the specification has its own options; the adapter builds those of its version. */
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** The versions of the specification that can be driven. */
export type SpecificationVersion = LanguageModel['specificationVersion'];

/** Data that only one provider reads, by provider. */
export type ProviderOptions = Readonly<Record<string, JsonObject>>;

interface HasProviderOptions {
  readonly providerOptions?: ProviderOptions;
}

/** File data: v4 tags it, v2 and v3 take base64 text or a URL object. */
export type FileData =
  | string
  | URL
  | { readonly type: 'data'; readonly data: string }
  | { readonly type: 'url'; readonly url: URL };

export type PromptPart = HasProviderOptions &
  (
    | { readonly type: 'text' | 'reasoning'; readonly text: string }
    | {
        readonly type: 'file' | 'reasoning-file';
        readonly data: FileData;
        readonly mediaType: string;
      }
    | { readonly type: 'custom'; readonly kind: string }
    | {
        readonly type: 'tool-call';
        readonly toolCallId: string;
        readonly toolName: string;
        readonly input: unknown;
        readonly providerExecuted?: true;
      }
    | {
        readonly type: 'tool-result';
        readonly toolCallId: string;
        readonly toolName: string;
        readonly output: ToolOutput;
      }
  );

export type ToolOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json' | 'error-json'; readonly value: Json }
  | { readonly type: 'content'; readonly value: readonly ToolOutputContent[] };

export type ToolOutputContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'media' | 'file-data'; readonly data: string; readonly mediaType: string }
  | { readonly type: 'file-url'; readonly url: string }
  | { readonly type: 'file'; readonly data: FileData; readonly mediaType: string };

export type PromptMessage = HasProviderOptions &
  (
    | { readonly role: 'system'; readonly content: string }
    | { readonly role: 'user' | 'assistant' | 'tool'; readonly content: readonly PromptPart[] }
  );

/** The options of a call; the settings of `ModelConfig` are spread into it. */
export interface CallOptions extends HasProviderOptions {
  readonly prompt: readonly PromptMessage[];
  readonly responseFormat?: {
    readonly type: 'json';
    readonly schema?: JsonSchema;
    readonly name?: string;
  };
  readonly tools?: readonly CallTool[];
  readonly toolChoice?:
    | { readonly type: 'auto' | 'none' | 'required' }
    | { readonly type: 'tool'; readonly toolName: string };
  readonly abortSignal?: AbortSignal;
}

export type CallTool =
  | {
      readonly type: 'function';
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: JsonSchema;
    }
  | {
      readonly type: 'provider' | 'provider-defined';
      readonly id: string;
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
    };

/** A number of tokens: v2 says it plainly, v3 and v4 break it down. */
export type Tokens =
  | number
  | {
      readonly total?: number | undefined;
      readonly cacheRead?: number | undefined;
      readonly cacheWrite?: number | undefined;
      readonly reasoning?: number | undefined;
    }
  | null
  | undefined;

export interface StreamUsage {
  readonly inputTokens?: Tokens;
  readonly outputTokens?: Tokens;
  readonly totalTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  readonly cachedInputTokens?: number | undefined;
}

/** File data as models send it. */
export type StreamFileData =
  | string
  | Uint8Array
  | { readonly type: 'data'; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: URL | string };

interface HasProviderMetadata {
  readonly providerMetadata?: ProviderOptions;
}

/** The parts of a model's stream that mean something here; all others are passed over. */
export type StreamPart =
  | { readonly type: 'stream-start'; readonly warnings?: readonly unknown[] }
  | (HasProviderMetadata & {
      readonly type: 'text-start' | 'reasoning-start';
      readonly id: string;
    })
  | (HasProviderMetadata & {
      readonly type: 'text-end' | 'reasoning-end';
      readonly id: string;
      readonly citations?: readonly unknown[];
    })
  | (HasProviderMetadata & {
      readonly type: 'text-delta' | 'reasoning-delta';
      readonly id: string;
      readonly delta: string;
    })
  | (HasProviderMetadata & {
      readonly type: 'tool-call';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly providerExecuted?: boolean;
    })
  | (HasProviderMetadata & {
      readonly type: 'tool-result';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly result: unknown;
      readonly isError?: boolean;
      readonly preliminary?: boolean;
    })
  | (HasProviderMetadata & {
      readonly type: 'file' | 'reasoning-file';
      readonly mediaType: string;
      readonly data: StreamFileData;
    })
  | (HasProviderMetadata & { readonly type: 'source' })
  | (HasProviderMetadata & { readonly type: 'custom'; readonly kind: string })
  | {
      readonly type: 'response-metadata';
      readonly id?: string;
      readonly modelId?: string;
    }
  | (HasProviderMetadata & {
      readonly type: 'finish';
      readonly usage?: StreamUsage;
      readonly finishReason?:
        | string
        | { readonly unified: string; readonly raw?: string | undefined };
    })
  | { readonly type: 'error'; readonly error: unknown };
