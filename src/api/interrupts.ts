import { failedPrecondition, invalid } from '../core/error.ts';
import { isJsonObject, type Json } from '../core/json/json.ts';
import type { Message, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { isInterrupted, pendingInterrupts, requestKey } from '../protocol/messages.ts';
import type { Resume } from '../protocol/turn.ts';

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
  /** The data that the tool interrupted with; `true` if it gave none. */
  readonly metadata: Json;
  /** Until when it can be approved or answered, as ISO 8601; `undefined` without a deadline. */
  readonly expiresAt: string | undefined;
  /** The request as it is stored and sent. */
  readonly request: ToolRequestPart;
  /** The tool calls of a sub-agent that wait, if the tool is a sub-agent; else empty. */
  readonly interrupts: readonly Interrupt[];
  /**
   * Runs the tool. `input` replaces the input of the model and must fit the tool's schema; `resumed` is what the tool sees
   * as `resumed`. For a sub-agent it runs all tools that wait inside it. @default resumed: true
   */
  approve(options?: { readonly input?: unknown; readonly resumed?: Json }): InterruptAnswer;
  /** Answers in place of the tool. The value must fit the tool's output schema. For a sub-agent it answers the tool that waits inside it. */
  respond(output: unknown): InterruptAnswer;
  /** Does not run the tool, and tells the model so. For a sub-agent it declines all that wait inside it, and the sub-agent continues. */
  decline(reason?: string): InterruptAnswer;
  /** Answers each of `interrupts` separately, and continues the sub-agent with the answers. */
  resume(answers: (request: Interrupt) => InterruptAnswer): InterruptAnswer;
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

export function toResume(
  answers: InterruptAnswer | readonly InterruptAnswer[] | ResumeInput,
): Resume {
  const parts: readonly InterruptAnswer[] = Array.isArray(answers)
    ? answers
    : partsOf(answers as InterruptAnswer | ResumeInput);
  // Plain JavaScript can forget to return an answer, or return `true`.
  if (!parts.every(isAnswer)) {
    throw invalid('An answer is missing. Return request.approve(), .respond(…) or .decline(…).');
  }
  const respond = parts.filter((part): part is ToolResponsePart => 'toolResponse' in part);
  const restart = parts.filter((part): part is ToolRequestPart => 'toolRequest' in part);
  return {
    ...(respond.length > 0 && { respond }),
    ...(restart.length > 0 && { restart }),
  };
}

function partsOf(answers: InterruptAnswer | ResumeInput): readonly InterruptAnswer[] {
  if (isAnswer(answers)) return [answers];
  const { respond = [], restart = [] } = answers ?? {};
  return [...respond, ...restart];
}

/** Whether this is what `approve`, `respond` or `decline` return. */
export function isAnswer(given: unknown): given is InterruptAnswer {
  return (
    typeof given === 'object' && !!given && ('toolResponse' in given || 'toolRequest' in given)
  );
}

function toInterrupt(request: ToolRequestPart): Interrupt {
  const { toolRequest, metadata } = request;
  const { name, ref, input } = toolRequest;
  const named = { name, ...(ref !== undefined && { ref }) };
  const interrupts = subAgentRequests(metadata?.interrupt).map(toInterrupt);
  const common = {
    key: requestKey(toolRequest),
    toolName: name,
    ref,
    input,
    metadata: metadata?.interrupt ?? null,
    expiresAt: typeof metadata?.expiresAt === 'string' ? metadata.expiresAt : undefined,
    request,
    interrupts,
  };
  if (interrupts.length > 0) return { ...common, ...insideSubAgent(request, interrupts) };
  return {
    ...common,
    // A value that is not JSON is refused where the input of a turn is checked.
    approve({ input: edited, resumed = true } = {}) {
      if (edited === undefined) return { toolRequest, metadata: { resumed } };
      return {
        toolRequest: { ...named, input: edited as Json },
        metadata: { resumed, replacedInput: input ?? null },
      };
    },
    respond: (output) => ({ toolResponse: { ...named, output: output as Json } }),
    decline: (reason) => ({ toolResponse: named, metadata: { declined: reason ?? true } }),
    resume() {
      throw invalid(
        `Tool "${name}" is no sub-agent, so nothing waits inside it. Use approve, respond or decline.`,
      );
    },
  };
}

type AnswerMethods = Pick<Interrupt, 'approve' | 'respond' | 'decline' | 'resume'>;

/** The sub-agent's tool is restarted with the answers to the interrupts inside it, also where they decline. */
function insideSubAgent(
  { toolRequest }: ToolRequestPart,
  interrupts: readonly Interrupt[],
): AnswerMethods {
  const answered = (resumed: Resume): InterruptAnswer => ({
    toolRequest,
    metadata: { resumed: resumed as unknown as Json },
  });
  const resume: AnswerMethods['resume'] = (answers) =>
    answered(toResume(interrupts.map((each) => answers(each))));
  const only = (what: string): Interrupt => {
    const [first, ...others] = interrupts;
    if (first !== undefined && others.length === 0) return first;
    throw invalid(
      `${interrupts.length} tool calls of sub-agent "${toolRequest.name}" wait, so ${what} is ambiguous. Answer each of them: request.resume((inner) => …).`,
    );
  };
  return {
    approve(options = {}) {
      if (isResume(options.resumed)) return answered(options.resumed as Resume);
      if (options.input !== undefined) only('an edited input');
      return resume((inner) => inner.approve(options));
    },
    respond(output) {
      only('one output');
      return resume((inner) => inner.respond(output));
    },
    decline: (reason) => resume((inner) => inner.decline(reason)),
    resume,
  };
}

/**
 * The answers to the interrupts inside a sub-agent, for the value that its tool is restarted with: answers already, or a value such as
 * `true` for each tool that waits.
 */
export function toSubAgentResume(resumed: Json, interrupted: Json): Json {
  const requests = subAgentRequests(interrupted);
  if (isResume(resumed) || requests.length === 0) return resumed;
  const answers = requests.map((request) => toInterrupt(request).approve({ resumed }));
  return toResume(answers) as unknown as Json;
}

function isResume(value: Json | undefined): boolean {
  return isJsonObject(value) && ('respond' in value || 'restart' in value);
}

/** The requests of an interrupted sub-agent; empty for what other tools interrupt with. */
export function subAgentRequests(data: Json | undefined): readonly ToolRequestPart[] {
  if (!isJsonObject(data) || !Array.isArray(data.requests) || !('agent' in data)) return [];
  return data.requests.filter(
    (each: unknown): each is ToolRequestPart =>
      typeof each === 'object' && each !== null && 'toolRequest' in each,
  );
}

/** Answers to interrupted tool requests. */
export interface ResumeInput {
  /** Answers in place of the tools. */
  readonly respond?: readonly ToolResponsePart[];
  /** Requests whose tools run now. */
  readonly restart?: readonly ToolRequestPart[];
}

/** One answer to an interrupt, several, all of them by kind, or a function that answers each. */
export type Answers =
  | InterruptAnswer
  | readonly InterruptAnswer[]
  | ResumeInput
  | ((request: Interrupt) => InterruptAnswer);

/** A conversation, with its interrupts where they are known. */
interface Asked {
  readonly sessionId: string | undefined;
  readonly state?: { readonly messages?: readonly Message[] | undefined } | undefined;
  readonly interrupts?: readonly Interrupt[];
}

/** Reads the session that waits, with its interrupts. */
type ReadSession = (sessionId: string) => Promise<Pick<Asked, 'interrupts'> | undefined>;

/** The input of a turn that gives these answers. A function answers each interrupt; those that `asked` does not have are read. */
export function toAnswers(
  asked: Asked,
  answers: Answers,
  read: ReadSession,
): Resume | Promise<Resume> {
  if (typeof answers !== 'function') return toResume(answers);
  return interruptsIn(asked, read).then((all) => toResume(all.map((request) => answers(request))));
}

async function interruptsIn(asked: Asked, read: ReadSession): Promise<readonly Interrupt[]> {
  const { sessionId, state } = asked;
  const known = asked.interrupts ?? (state && interruptsAtEnd(state.messages ?? []));
  const found = known
    ? { interrupts: known }
    : sessionId === undefined
      ? undefined
      : await read(sessionId);
  if (found?.interrupts?.length) return found.interrupts;
  // The turn is refused, because there is no such session.
  if (sessionId && !found) return [];
  throw failedPrecondition(
    `Cannot resume ${sessionId ? `session "${sessionId}"` : 'a chat without a turn'}: no tool call waits for an answer.`,
  );
}
