import type { Json, JsonObject } from '../../core/json/json.ts';
import type { InferSchema, Schema } from '../../core/schema/schema.ts';
import type { Message, ToolRequestPart } from '../../protocol/message.ts';
import { isInterrupted, PartialAnswer, textOf, toolRequestsOf } from '../../protocol/messages.ts';
import { parseMessage } from '../../protocol/parse.ts';
import type { FinishReason, ModelChunk, Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type { GenerateProgress, ToolOutcome } from '../hooks.ts';
import type { ModelResponse } from '../model.ts';
import { parseOutput, type ResolvedOutput } from '../output/output.ts';
import { toolMessage } from '../template.ts';
import { closedResponse } from '../tool/resume.ts';

/** An answer, and the model that gave it, which may be another than the one that was asked first. */
export interface Answer extends ModelResponse {
  readonly model: string;
}

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
  /** The tool requests that wait for an answer from outside. */
  readonly interrupts: readonly ToolRequestPart[];
  /** Why the model stopped. */
  readonly finishReason: FinishReason;
  /** The tokens of all model calls. */
  readonly usage: Usage;
  /** The name of the model that answered last. */
  readonly model: string;
  /** Instructions that the model did not follow. */
  readonly warnings: readonly Json[];
  /** Other facts from the provider about the last answer. */
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

/** The response for a message that ends the call. */
export function toResponse(
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

/** The progress of a generate call: whole messages, and the answer or tool calls under way. */
export class Progress implements GenerateProgress {
  readonly #whole: Message[] = [];
  #usage: Usage = {};
  readonly #answer = new PartialAnswer();
  #requests: readonly ToolRequestPart[] = [];
  #outcomes: (ToolOutcome | undefined)[] = [];

  /** How many whole messages there are; the place of the next one. */
  get length(): number {
    return this.#whole.length;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The whole messages, in order; the caller's own array. */
  whole(): Message[] {
    return [...this.#whole];
  }

  /**
   * Everything so far as messages that every provider accepts: the part of an unfinished answer that can be kept, and for each tool
   * that is still running a response that says so.
   */
  get messages(): readonly Message[] {
    const messages = this.whole();
    const { content } = this.#answer;
    if (content.length > 0) messages.push(parseMessage({ role: 'model', content }));
    if (this.#requests.length > 0) messages.push(parseMessage(this.#closedRound()));
    return messages;
  }

  /** Checks, freezes and adds a message; what was being worked on is done with it. */
  add(message: Message): Message {
    const frozen = parseMessage(message);
    this.#whole.push(frozen);
    this.#answer.clear();
    this.#requests = [];
    return frozen;
  }

  replaceLast(message: Message): Message {
    this.#whole.pop();
    return this.add(message);
  }

  addUsage(usage: Usage | undefined): void {
    this.#usage = addUsage(this.#usage, usage);
  }

  addChunk({ content }: ModelChunk): void {
    for (const part of content) this.#answer.add(part);
  }

  /** An answer begins, or begins again. */
  startAnswer(): void {
    this.#answer.clear();
  }

  startTools(requests: readonly ToolRequestPart[]): void {
    this.#requests = requests;
    this.#outcomes = [];
  }

  endTool(index: number, outcome: ToolOutcome): void {
    this.#outcomes[index] = outcome;
  }

  #closedRound(): Message {
    return toolMessage(
      this.#requests.map((request, index) => {
        const outcome = this.#outcomes[index];
        return outcome && 'response' in outcome
          ? outcome.response
          : closedResponse(request, 'aborted');
      }),
    );
  }
}
