import type { ActionContext } from '../core/action.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { ModelChunk, Resume } from '../protocol/turn.ts';
import type { DocumentLike } from './document.ts';
import type { HistorySelection } from './history.ts';
import type { Limits } from './limits.ts';
import type { Content } from './message.ts';
import type { Middleware } from './middleware/middleware.ts';
import type { ModelConfig, ModelRef, ToolChoice } from './model.ts';
import type { OutputOptions } from './output/output.ts';
import type { ResourceRef } from './resource.ts';
import type { ToolRef } from './tool-source.ts';

/** What can be settled before a conversation is known: the settings that prompts and agents share with generate. */
export interface GenerateSettings<
  Output extends Schema | undefined = Schema | undefined,
  State = never,
> {
  /** @default the app's model */
  readonly model?: ModelRef;
  readonly config?: ModelConfig;
  /** What the model may call: tools, names of defined tools, and sources of tools such as MCP servers. */
  readonly tools?: readonly ToolRef<State>[];
  /**
   * What the model must do first; once tools have run it is free to answer.
   * @default 'auto'
   */
  readonly toolChoice?: ToolChoice;
  /**
   * How often the model may be answered by tools.
   * @default 10
   */
  readonly maxTurns?: number;
  /** What resource parts in messages may refer to. */
  readonly resources?: readonly ResourceRef[];
  /** What the model should know; it reaches the model behind the last user message. */
  readonly docs?: readonly DocumentLike[];
  readonly output?: OutputOptions<Output>;
  readonly limits?: Limits;
  readonly use?: readonly Middleware[];
}

/** What a generate call takes. */
export interface GenerateOptions<Output extends Schema | undefined = Schema | undefined>
  extends GenerateSettings<Output> {
  /** The system message. */
  readonly system?: Content;
  /** Messages that reach the model before the conversation. */
  readonly before?: readonly Message[];
  /** The conversation so far; it is read and never changed. */
  readonly messages?: readonly Message[];
  /** What the user says now; it stands behind `messages`. */
  readonly prompt?: Content;
  /** Messages that reach the model behind the conversation, before its answer begins. */
  readonly after?: readonly Message[];
  /**
   * What of `messages` the model sees.
   * @default all of it
   */
  readonly history?: HistorySelection;
  /**
   * Gives tool requests to the caller instead of running them.
   * @default false
   */
  readonly returnToolRequests?: boolean;
  /** Answers to the interrupted tool requests that `messages` end with. */
  readonly resume?: Resume;
  readonly signal?: AbortSignal | undefined;
  /** What tools and templates get to know about the caller. */
  readonly context?: ActionContext | undefined;
  /** Gets the pieces of the answers, and the results of tools, as they come; the model waits for a promise. */
  readonly onChunk?: (chunk: ModelChunk) => void | Promise<void>;
}
