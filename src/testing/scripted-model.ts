import { abortError } from '../core/async/signal.ts';
import { WaymarkError } from '../core/error.ts';
import { type Json, jsonLength } from '../core/json/json.ts';
import { checkOptions, kindOf, type OptionNames } from '../core/options.ts';
import { type Clock, systemClock } from '../core/time.ts';
import { estimateTokens } from '../generate/answer/history.ts';
import type { Model, ModelCall, ModelRequest, ModelResponse } from '../generate/model.ts';
import type { Message, Part } from '../protocol/message.ts';
import { joinText, textOf } from '../protocol/messages.ts';
import type { FinishReason, Usage } from '../protocol/turn.ts';

/** The reply of a scripted model: a text, or a full answer. */
export type ScriptedReply = string | ScriptedAnswer;

/** A full answer; omitted fields are not part of it. */
interface ScriptedAnswer {
  /** Streamed as one chunk; use `chunks` for several. */
  readonly text?: string;
  /** The text, split into the chunks to stream. */
  readonly chunks?: readonly string[];
  /** The reasoning of the model before its answer. */
  readonly reasoning?: string;
  /** Tool calls of the model: `{ name, input, ref? }`. */
  readonly toolCalls?: readonly ScriptedToolCall[];
  /** More parts, such as media. */
  readonly parts?: readonly Part[];
  /** Milliseconds before the first chunk. */
  readonly delay?: number;
  /** Milliseconds before each further chunk. */
  readonly chunkDelay?: number;
  /** Thrown after everything else has been streamed. */
  readonly error?: unknown;
  /** Never finishes after everything else has been streamed, until it is aborted. */
  readonly hang?: boolean;
  /** @default 'stop' */
  readonly finishReason?: FinishReason;
  /** @default a token for four characters of the messages and of the answer, as JSON */
  readonly usage?: Usage;
}

/** A tool call of a scripted answer. */
interface ScriptedToolCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input of the call. */
  readonly input?: Json;
  /** @default `call-1`, `call-2` and so on, counted per model */
  readonly ref?: string;
}

/** A reply, or a function that creates one from the request. */
export type ScriptStep =
  | ScriptedReply
  | ((request: ModelRequest, call: number) => ScriptedReply | Promise<ScriptedReply>);

/** Replies by the last user message: the first matching pattern is used. */
interface ScriptPatterns {
  /** Pairs of a regular expression and a reply, or a function of the match. */
  readonly patterns: readonly (readonly [
    RegExp,
    ScriptedReply | ((match: RegExpExecArray, request: ModelRequest) => ScriptedReply),
  ])[];
  /**
   * Creates the reply after tool results.
   * @default the results as text
   */
  readonly afterTools?: (request: ModelRequest, results: readonly Json[]) => ScriptedReply;
  /** The reply when no pattern matches. */
  readonly otherwise: ScriptStep;
}

/** Options of a scripted model. */
interface ScriptedModelOptions {
  /** @default 'scripted' */
  readonly name?: string;
  /** The clock for delays. @default systemClock */
  readonly clock?: Clock;
}

/** A model that replies from a script and records its requests. */
export interface ScriptedModel extends Model {
  /** All requests, in order. */
  readonly requests: readonly ModelRequest[];
  /** Number of calls that were aborted. */
  readonly stops: number;
  /** Appends steps to the script. */
  add(...steps: readonly ScriptStep[]): void;
}

/**
 * Creates a model for tests and demos that replies call by call, or by pattern. A call beyond the script throws FAILED_PRECONDITION.
 *
 * @example
 * const model = scriptedModel([{ toolCalls: [{ name: 'weather', input: { city: 'Lisbon' } }] }, 'It is sunny.']);
 * await chat.run('How is Lisbon?', { model });
 */
export function scriptedModel(
  script: readonly ScriptStep[] | ScriptPatterns,
  { name = 'scripted', clock = systemClock }: ScriptedModelOptions = {},
): ScriptedModel {
  checkScript(script);
  const steps: ScriptStep[] = 'patterns' in script ? [] : [...script];
  const requests: ModelRequest[] = [];
  let stops = 0;
  let toolCalls = 0;

  const stepOf = (call: number): ScriptStep => {
    if ('patterns' in script) return (request) => replyByPattern(script, request, call);
    const step = steps[call];
    if (step === undefined) throw scriptEnded(name, steps.length);
    return step;
  };

  const run = async (request: ModelRequest, call: ModelCall): Promise<ModelResponse> => {
    const index = requests.push(request) - 1;
    const step = stepOf(index);
    const reply = typeof step === 'function' ? await step(request, index) : step;
    const answer = typeof reply === 'string' ? { text: reply } : reply;
    const onAbort = (): void => {
      stops++;
    };
    call.signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await play(answer, { request, call, clock, newRef: () => `call-${++toolCalls}` });
    } finally {
      call.signal.removeEventListener('abort', onAbort);
    }
  };

  if (!('patterns' in script)) countedRuns.add(run);
  return {
    name,
    provider: 'scripted',
    run,
    requests,
    get stops() {
      return stops;
    },
    add: (...more) => {
      for (const step of more) checkReply(step);
      steps.push(...more);
    },
  };
}

const countedRuns = new WeakSet<Model['run']>();

/** Whether a model replies by the number of its calls, so that a call that is repeated gets the wrong reply. */
export function repliesInOrder({ run }: Model): boolean {
  return countedRuns.has(run);
}

const answerNames: OptionNames<ScriptedAnswer> = {
  text: 'text',
  chunks: 'list',
  reasoning: 'text',
  toolCalls: 'list',
  parts: 'list',
  delay: 'number',
  chunkDelay: 'number',
  error: true,
  hang: 'boolean',
  finishReason: 'text',
  usage: 'object',
};

const what = 'a scripted answer';

/** Refuses a script that is not one, and replies that are known when it is written. */
function checkScript(script: unknown): void {
  const { patterns, otherwise } = (script ?? {}) as Partial<ScriptPatterns>;
  if (Array.isArray(script)) for (const step of script) checkReply(step);
  else if (Array.isArray(patterns) && otherwise !== undefined) {
    for (const [, reply] of patterns) checkReply(reply);
    checkReply(otherwise);
  } else {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'scriptedModel() takes a list of replies, such as ["Hello."], or { patterns, otherwise }.',
    );
  }
}

function checkReply(reply: unknown): void {
  if (typeof reply === 'string' || typeof reply === 'function') return;
  if (typeof reply !== 'object' || reply === null) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `A scripted reply must be a text, an answer or a function, and is ${kindOf(reply)}.`,
    );
  }
  const answer: ScriptedAnswer = reply;
  checkOptions(answer, answerNames, what, { delayMs: 'delay', chunkDelayMs: 'chunkDelay' });
  const { chunks = [], toolCalls = [] } = answer;
  if (!chunks.every((chunk) => typeof chunk === 'string')) {
    throw new WaymarkError('INVALID_ARGUMENT', `\`chunks\` of ${what} must be a list of texts.`);
  }
  for (const call of toolCalls) {
    checkOptions(call, { name: 'text', input: true, ref: 'text' }, 'a scripted tool call', {
      toolName: 'name',
      args: 'input',
      arguments: 'input',
      toolCallId: 'ref',
    });
  }
}

interface Stage {
  readonly request: ModelRequest;
  readonly call: ModelCall;
  readonly clock: Clock;
  newRef(): string;
}

async function play(answer: ScriptedAnswer, stage: Stage): Promise<ModelResponse> {
  const { call, clock, request } = stage;
  const { signal } = call;
  checkReply(answer);
  const { delay = 0, chunkDelay = 0, finishReason = 'stop', error, hang = false } = answer;
  const pieces = piecesOf(answer, stage);
  for (const [index, piece] of pieces.entries()) {
    const wait = index === 0 ? delay : chunkDelay;
    if (wait > 0) await clock.sleep(wait, signal);
    await call.stream({ content: [piece] });
    if (signal.aborted) throw abortError(signal);
  }
  if (error !== undefined) throw error;
  if (hang)
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(abortError(signal))),
    );
  const message: Message = { role: 'model', content: join(pieces) };
  return {
    message,
    finishReason,
    usage: answer.usage ?? countUsage(request.messages, message),
  };
}

function piecesOf(answer: ScriptedAnswer, { newRef }: Stage): Part[] {
  const {
    text,
    chunks = text === undefined ? [] : [text],
    reasoning,
    toolCalls = [],
    parts = [],
  } = answer;
  return [
    ...(reasoning === undefined ? [] : [{ reasoning }]),
    ...chunks.map((piece) => ({ text: piece })),
    ...parts,
    ...toolCalls.map(({ name, input = {}, ref = newRef() }) => ({
      toolRequest: { name, ref, input },
    })),
  ];
}

// The whole message: consecutive texts are joined into one part.
function join(pieces: readonly Part[]): Part[] {
  const content: Part[] = [];
  for (const piece of pieces) if (!joinText(content, piece)) content.push(piece);
  return content;
}

/** Characters of a message above which its tokens are estimated without writing it as JSON. */
const longMessage = 10_000;

// Messages are immutable, so each is counted once.
const counted = new WeakMap<Message, number>();

function tokensOf(message: Message): number {
  const tokens = counted.get(message) ?? countTokens(message);
  counted.set(message, tokens);
  return tokens;
}

// Writing megabytes as JSON would block the event loop, so a long message is only measured.
function countTokens(message: Message): number {
  const isLong = jsonLength(message.content, longMessage) > longMessage;
  if (!isLong) return estimateTokens(message);
  return Math.ceil(jsonLength(message.content, Number.POSITIVE_INFINITY) / 4);
}

function countUsage(request: readonly Message[], answer: Message): Usage {
  const inputTokens = request.reduce((sum, message) => sum + tokensOf(message), 0);
  const outputTokens = tokensOf(answer);
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

async function replyByPattern(
  {
    patterns,
    afterTools = (_, results) => results.map(said).join('\n'),
    otherwise,
  }: ScriptPatterns,
  request: ModelRequest,
  call: number,
): Promise<ScriptedReply> {
  const last = request.messages.at(-1);
  if (last?.role === 'tool') {
    const results = last.content.flatMap((part) =>
      'toolResponse' in part ? [part.toolResponse.output ?? null] : [],
    );
    return afterTools(request, results);
  }
  const spoken = request.messages.findLast(({ role }) => role === 'user');
  const text = spoken ? textOf(spoken) : '';
  for (const [pattern, reply] of patterns) {
    const match = pattern.exec(text);
    if (match) return typeof reply === 'function' ? reply(match, request) : reply;
  }
  return typeof otherwise === 'function' ? otherwise(request, call) : otherwise;
}

function said(result: Json): string {
  return typeof result === 'string' ? result : JSON.stringify(result);
}

function scriptEnded(name: string, length: number): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `The script of model "${name}" has only ${length} ${length === 1 ? 'reply' : 'replies'}, but the model was called again. Add a reply.`,
  );
}
