import type { ActionContext } from '../core/action.ts';
import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { Cost, ModelChunk, Resume, Usage } from '../protocol/turn.ts';
import { totalTokens } from '../protocol/usage.ts';
import type { CompactOptions, HistorySelection } from './answer/history.ts';
import type { Middleware } from './middleware/middleware.ts';
import type { ModelConfig, ModelRef, ToolChoice } from './model.ts';
import type { OutputSetting } from './output/output.ts';
import type { ResourceRef } from './resource.ts';
import type { Content } from './template.ts';
import type { ToolRef } from './tool/tool-source.ts';

/** A text for the model to use in its answer. */
interface Document {
  readonly content: Content;
  readonly metadata?: JsonObject;
}

/** A document, or its text. */
type DocumentLike = string | Document;

/** The settings that prompts and agents share with generate: everything that does not depend on a conversation. */
export interface GenerateSettings<
  Output extends Schema | undefined = Schema | undefined,
  State = never,
> {
  /** @default the app's model */
  readonly model?: ModelRef;
  /** Settings of the model, such as the temperature. */
  readonly config?: ModelConfig;
  /** Tools for the model: tools, names of defined tools, and tool sources such as MCP servers. */
  readonly tools?: readonly ToolRef<State>[];
  /**
   * Whether the model must call a tool first; once tools have run it may answer.
   * @default 'auto'
   */
  readonly toolChoice?: ToolChoice;
  /**
   * Maximum number of tool iterations, the rounds of tool calls within one turn.
   * @default 10
   */
  readonly maxTurns?: number;
  /** The resources that resource parts in messages can refer to. */
  readonly resources?: readonly ResourceRef[];
  /** Documents for the model; they are sent after the last user message. */
  readonly docs?: readonly DocumentLike[];
  /** The form of the answer: a schema, or options with a format. */
  readonly output?: OutputSetting<Output>;
  /** Limits of time, tokens and tool calls. */
  readonly limits?: Limits;
  /** Middleware around model and tool calls, the first outermost. */
  readonly use?: readonly Middleware[];
}

export const generateSettingNames: OptionNames<GenerateSettings> = {
  model: true,
  config: true,
  tools: true,
  toolChoice: true,
  maxTurns: true,
  resources: true,
  docs: true,
  output: true,
  limits: true,
  use: true,
};

/** Options of a generate call. */
export interface GenerateOptions<Output extends Schema | undefined = Schema | undefined>
  extends GenerateSettings<Output> {
  /** The system message. */
  readonly system?: Content;
  /** Messages that are sent before the conversation. */
  readonly before?: readonly Message[];
  /** The conversation so far. It is never changed. */
  readonly messages?: readonly Message[];
  /** The new user message, sent after `messages`. */
  readonly prompt?: Content;
  /** Messages that are sent after the conversation, before the answer. */
  readonly after?: readonly Message[];
  /**
   * Selects which of `messages` are sent to the model.
   * @default all of it
   */
  readonly history?: HistorySelection;
  /**
   * Summarizes the older messages of a long conversation for the model. The first message of the answer carries a new summary
   * in its metadata, so that the next call finds it in `messages`.
   */
  readonly compact?: CompactOptions;
  /**
   * Returns tool requests to the caller instead of running them.
   * @default false
   */
  readonly returnToolRequests?: boolean;
  /** Answers to the interrupted tool requests that `messages` end with. */
  readonly resume?: Resume;
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined;
  /** The caller's context for tools and templates. */
  readonly context?: ActionContext | undefined;
  /** Called with each chunk of an answer and each tool result. If it returns a promise, the model waits for it. */
  readonly onChunk?: (chunk: ModelChunk) => void | Promise<void>;
}

export const generateOptionNames: OptionNames<GenerateOptions> = {
  ...generateSettingNames,
  system: true,
  before: true,
  messages: true,
  prompt: true,
  after: true,
  history: true,
  compact: true,
  returnToolRequests: true,
  resume: true,
  signal: true,
  context: true,
  onChunk: true,
};

/** Limits of one generate call. Exceeding one ends the call with RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED. */
export interface Limits {
  /** Total time in milliseconds. */
  readonly timeout?: number;
  /** Tokens of all model calls; once they are used up, the model is not called again. */
  readonly tokens?: number;
  /** Cost of all model calls, in micro-units by currency: `{ USD: 250_000 }` is $0.25. Once it is used up, the model is not called again. */
  readonly cost?: Cost;
  /** Total number of tool calls. */
  readonly toolCalls?: number;
  /**
   * Milliseconds without output from the model.
   * @default 600000
   */
  readonly idleTimeout?: number;
  /**
   * Characters of one answer of the model, including tool requests.
   * @default 10000000
   */
  readonly answerLength?: number;
  /**
   * Tool calls that run at the same time; the others of the same answer wait for them.
   * @default 16
   */
  readonly toolConcurrency?: number;
  /**
   * Characters of one tool result as JSON; the error asks the model to request less.
   * @default 4000000
   */
  readonly toolResultLength?: number;
}

const limitNames: OptionNames<Limits> = {
  timeout: 'number',
  tokens: 'number',
  cost: true,
  toolCalls: 'number',
  idleTimeout: 'number',
  answerLength: 'number',
  toolConcurrency: 'number',
  toolResultLength: 'number',
};

/** Refuses limits that do not exist, or are no numbers; `what` names whose they are. */
export function checkLimits(limits: Limits, what: string): void {
  checkOptions(limits, limitNames, what, { timeMs: 'timeout', idleMs: 'idleTimeout' });
}

export const defaultLimits = {
  idleTimeout: 600_000,
  answerLength: 10_000_000,
  toolConcurrency: 16,
  toolResultLength: 4_000_000,
} as const satisfies Limits;

/** Throws when the tokens or the money are used up. */
export function checkTokens({ tokens, cost }: Limits, used: Usage): void {
  for (const [currency, most] of Object.entries(cost ?? {})) {
    const spent = used.cost?.[currency] ?? 0;
    if (spent < most) continue;
    const amount = `${spent / 1e6} of ${most / 1e6} ${currency}`;
    throw exhausted('cost', `${amount} are spent, and the answer is not complete`, {
      currency,
      used: spent,
      most,
    });
  }
  if (tokens === undefined || totalTokens(used) < tokens) return;
  throw exhausted(
    'tokens',
    `${totalTokens(used)} of ${tokens} tokens are used, and the answer is not complete`,
    { used: totalTokens(used), most: tokens },
  );
}

/** Throws when so many tool calls are too many. */
export function checkToolCalls({ toolCalls }: Limits, count: number): void {
  if (toolCalls === undefined || count <= toolCalls) return;
  throw exhausted('toolCalls', `The model asked for ${count} tool calls of at most ${toolCalls}`, {
    used: count,
    most: toolCalls,
  });
}

/** Throws when the model has been answered by tools for the last time and still asks for more. */
export function checkTurns(maxTurns: number, turn: number): void {
  if (turn < maxTurns) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The model still asks for tools after ${maxTurns} tool iterations. Raise \`maxTurns\`, or find out why it does not stop.`,
    { details: { limit: 'maxTurns', maxTurns } },
  );
}

function exhausted(limit: keyof Limits, what: string, amounts: JsonObject): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `${what}. Raise \`limits.${limit}\`, or ask for less.`,
    { details: { limit, ...amounts } },
  );
}
