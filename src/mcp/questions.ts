import type {
  ElicitRequest,
  ElicitResult,
  InputRequiredResult,
} from '@modelcontextprotocol/client';
import {
  failedPrecondition,
  invalid,
  isWaymarkError,
  messageOf,
  WaymarkError,
} from '../core/error.ts';
import { contentHash } from '../core/json/hash.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../core/json/json.ts';
import { parse } from '../core/schema/schema.ts';
import { untrustedSchema } from '../core/schema/untrusted-schema.ts';

export interface Question {
  readonly message: string;
  readonly schema: JsonObject;
}

/**
 * The data stored with the interrupt of a question. A server of 2026 asks in the result of a call, and gets all answers and its
 * state back. A server of 2025 asks during the call, which is made again with the answers that were given.
 */
export interface Elicitation {
  readonly server: string;
  /** The answers so far, by the key of the question. */
  readonly answers: Readonly<Record<string, JsonObject>>;
  /** The key of the question that the interrupt asks. */
  readonly asked: string;
  /** All questions of the result, for a server of 2026. */
  readonly questions?: Readonly<Record<string, Question>>;
  readonly requestState?: string;
  /** The task that asks, for a server of 2026. */
  readonly taskId?: string;
}

export function interruptData(question: Question, elicitation: Elicitation): Json {
  const { message, schema } = question;
  return toJson({ message, schema, elicitation }, 'A question of an MCP server');
}

/** The data stored with the interrupt of a question; `undefined` for any other interrupt. */
export function elicitationOf(interrupted: Json | undefined): Elicitation | undefined {
  if (!isJsonObject(interrupted) || !isJsonObject(interrupted.elicitation)) return undefined;
  const { elicitation } = interrupted;
  const isOurs = typeof elicitation.asked === 'string' && isJsonObject(elicitation.answers);
  // Written by `interruptData`.
  return isOurs ? (elicitation as unknown as Elicitation) : undefined;
}

/** The answers to the questions so far, the one of this restart included. */
export function answersOf(
  interrupted: Json | undefined,
  resumed: Json | undefined,
): Readonly<Record<string, JsonObject>> {
  const elicitation = elicitationOf(interrupted);
  const answer = withDefaults(resumed, interrupted);
  if (elicitation === undefined || !isJsonObject(answer)) return elicitation?.answers ?? {};
  return { ...elicitation.answers, [elicitation.asked]: answer };
}

/** An answer in which fields that it leaves out have the defaults of the question. */
function withDefaults(resumed: Json | undefined, interrupted: Json | undefined): Json | undefined {
  const { schema } = isJsonObject(interrupted) ? interrupted : {};
  if (!isJsonObject(resumed) || !isJsonObject(schema)) return resumed;
  const { action, content = {} } = resumed;
  if (action !== 'accept' || !isJsonObject(content) || !isJsonObject(schema.properties)) {
    return resumed;
  }
  const defaults = Object.entries(schema.properties).flatMap(([name, property]) =>
    isJsonObject(property) && property.default !== undefined ? [[name, property.default]] : [],
  );
  return { ...resumed, content: { ...Object.fromEntries(defaults), ...content } };
}

/**
 * Refuses an answer that the server would not take. It is `{ action: 'accept', content }` with content that fits the schema, or
 * `{ action: 'decline' }` or `{ action: 'cancel' }`.
 */
export async function checkAnswer(resumed: Json, interrupted: Json): Promise<void> {
  if (elicitationOf(interrupted) === undefined) return;
  const answer = withDefaults(resumed, interrupted);
  const { action, content } = isJsonObject(answer) ? answer : {};
  if (action === 'decline' || action === 'cancel') return;
  if (action !== 'accept') {
    throw bad("Answer with { action: 'accept', content }, { action: 'decline' } or 'cancel'.");
  }
  const { schema } = interrupted as { readonly schema: JsonObject };
  try {
    await parse(untrustedSchema(schema), content, 'The content');
  } catch (error) {
    throw bad(messageOf(error));
  }
}

function bad(problem: string): WaymarkError {
  return invalid(`This does not answer the question. ${problem}`);
}

/** A question, as it is asked by either protocol. */
function questionOf(request: ElicitRequest['params']): Question {
  const { message } = request;
  if (!('requestedSchema' in request)) {
    throw new WaymarkError('UNIMPLEMENTED', 'Questions by URL are not supported.');
  }
  const schema = toJson(request.requestedSchema, 'The schema') as JsonObject;
  untrustedSchema(schema);
  return { message, schema };
}

/** The key of a question of a server of 2025, which has none: the same question again has the same key. */
function keyOf(question: Question, count: number): string {
  return `${count}:${contentHash(toJson(question, 'A question')).slice(0, 16)}`;
}

/** The questions in the result of a server of 2026. */
export function questionsOf(
  { inputRequests = {} }: InputRequiredResult,
  server: string,
): Readonly<Record<string, Question>> {
  return Object.fromEntries(
    Object.entries(inputRequests).map(([key, { method, params }]) => {
      if (method === 'elicitation/create') return [key, questionOf(params)];
      throw new WaymarkError(
        'UNIMPLEMENTED',
        `MCP server "${server}" asks for ${method}, which agents do not offer.`,
      );
    }),
  );
}

/** An answer as the protocol has it. It was checked when the turn was resumed. */
export function toElicitResult(answer: JsonObject): ElicitResult {
  const { action, content } = answer;
  return (action === 'accept' ? { action, content } : { action }) as ElicitResult;
}

/** A call during which a server of 2025 may ask. */
export interface AskedCall {
  readonly answers: Readonly<Record<string, JsonObject>>;
  /** Called with a question that has no answer yet: the call is cancelled, and made again with the answer. */
  onQuestion(question: Question, key: string): void;
}

/**
 * The questions of a server of 2025 on one connection. They do not say which call they belong to, and a cancelled call may
 * still ask. A question must never reach the user of another call, so it is only passed on if a single call can have asked it.
 */
export class LegacyQuestions {
  readonly #calls = new Map<AskedCall, number>();
  /** Called when the server asks something: from then on its calls run one after the other. */
  readonly #onAsked: () => void;
  /** Takes the connection out of use: a call on it may still ask, but there is no listener. */
  readonly #retire: () => void;
  #hasLostCalls = false;

  constructor(events: { readonly onAsked: () => void; readonly retire: () => void }) {
    this.#onAsked = events.onAsked;
    this.#retire = events.retire;
  }

  async during<T>(call: AskedCall, fn: () => Promise<T>): Promise<T> {
    this.#calls.set(call, 0);
    try {
      return await fn();
    } catch (error) {
      if (!isAnswered(error)) this.#hasLostCalls = true;
      throw error;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** Answers a question of the server with what the user said, or passes it on to the call. */
  async ask(params: ElicitRequest['params']): Promise<ElicitResult> {
    this.#onAsked();
    const [call, ...others] = this.#calls.keys();
    if (call === undefined || others.length > 0 || this.#hasLostCalls) {
      if (this.#hasLostCalls) this.#retire();
      throw failedPrecondition(
        'Several calls are running, so it is not known whose question this is. Call the tool again.',
      );
    }
    const question = questionOf(params);
    const count = this.#calls.get(call) ?? 0;
    this.#calls.set(call, count + 1);
    const key = keyOf(question, count);
    const answer = call.answers[key];
    if (answer) return toElicitResult(answer);
    call.onQuestion(question, key);
    this.#retire();
    return { action: 'cancel' };
  }
}

// A call that the server has refused is over.
function isAnswered(error: unknown): boolean {
  const cause = isWaymarkError(error) ? error.cause : undefined;
  return typeof (cause as { readonly code?: unknown } | undefined)?.code === 'number';
}
