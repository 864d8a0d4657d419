import type { Json } from '../core/json/json.ts';
import type { Message, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { isInterrupted, pendingInterrupts, requestKey } from '../protocol/messages/tool-round.ts';
import type { Resume } from '../protocol/turn.ts';
import type { ResumeInput } from './resume-input.ts';

/** The answer to one interrupt, for `agent.resume`. */
export type InterruptAnswer = ToolRequestPart | ToolResponsePart;

/** A tool call that waits for a person's answer. */
export interface Interrupt {
  /** Distinguishes the interrupts of one message. */
  readonly key: string;
  /** The tool that waits. */
  readonly toolName: string;
  /** The id that the model gave the call. */
  readonly ref: string | undefined;
  /** The input that the model called the tool with. */
  readonly input: Json | undefined;
  /** What the tool interrupted with; `true` if it gave nothing. */
  readonly metadata: Json;
  /** Until when it can be approved or answered, as ISO 8601; `undefined` without a deadline. */
  readonly expiresAt: string | undefined;
  /** The request as it is stored and sent. */
  readonly request: ToolRequestPart;
  /**
   * Runs the tool. `input` replaces the input of the model and must fit the tool's schema; `resumed` is what the tool sees
   * as `resumed`. @default resumed: true
   */
  approve(options?: { readonly input?: unknown; readonly resumed?: Json }): InterruptAnswer;
  /** Answers in place of the tool. The value must fit the tool's output schema. */
  respond(output: unknown): InterruptAnswer;
  /** Does not run the tool, and tells the model so. */
  decline(reason?: string): InterruptAnswer;
}

/** The interrupts of one message: of the model, or of tools that were interrupted again. */
export function interruptsOf(message: Message | undefined): readonly Interrupt[] {
  if (message?.role !== 'model' && message?.role !== 'tool') return [];
  const requests = message.content.filter((part) => 'toolRequest' in part);
  return requests.filter(isInterrupted).map(toInterrupt);
}

/** The interrupts that a conversation ends with. */
export function interruptsAtEnd(messages: readonly Message[]): readonly Interrupt[] {
  return pendingInterrupts(messages).map(toInterrupt);
}

/** The input of a turn that gives these answers. */
export function toResume(
  answers: InterruptAnswer | readonly InterruptAnswer[] | ResumeInput,
): Resume {
  const parts = Array.isArray(answers)
    ? answers
    : partsOf(answers as InterruptAnswer | ResumeInput);
  const respond = parts.filter((part): part is ToolResponsePart => 'toolResponse' in part);
  const restart = parts.filter((part): part is ToolRequestPart => 'toolRequest' in part);
  return {
    ...(respond.length > 0 && { respond }),
    ...(restart.length > 0 && { restart }),
  };
}

function partsOf(answers: InterruptAnswer | ResumeInput): readonly InterruptAnswer[] {
  if ('toolResponse' in answers || 'toolRequest' in answers) return [answers];
  return [...(answers.respond ?? []), ...(answers.restart ?? [])];
}

function toInterrupt(request: ToolRequestPart): Interrupt {
  const { toolRequest, metadata } = request;
  const { name, ref, input } = toolRequest;
  const named = { name, ...(ref !== undefined && { ref }) };
  return {
    key: requestKey(toolRequest),
    toolName: name,
    ref,
    input,
    metadata: metadata?.interrupt ?? null,
    expiresAt: typeof metadata?.expiresAt === 'string' ? metadata.expiresAt : undefined,
    request,
    // What is not JSON is refused where the input of a turn is checked.
    approve({ input: edited, resumed = true } = {}) {
      if (edited === undefined) return { toolRequest, metadata: { resumed } };
      return {
        toolRequest: { ...named, input: edited as Json },
        metadata: { resumed, replacedInput: input ?? null },
      };
    },
    respond: (output) => ({
      toolResponse: { ...named, output: output as Json },
    }),
    decline: (reason) => ({ toolResponse: named, metadata: { declined: reason ?? true } }),
  };
}
