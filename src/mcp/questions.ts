import type {
  ElicitRequest,
  ElicitResult,
  InputRequiredResult,
} from '@modelcontextprotocol/client';
import { messageOf, WaymarkError } from '../core/error.ts';
import { contentHash } from '../core/json/hash.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../core/json/json.ts';
import { parse } from '../core/schema/schema.ts';
import { untrustedSchema } from '../core/schema/untrusted-schema.ts';

/** A question of a server to the user: what it says, and the schema of the answer. */
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

/** The data of the interrupt that asks a question. */
export function interruptData(question: Question, elicitation: Elicitation): Json {
  const { message, schema } = question;
  return toJson({ message, schema, elicitation }, 'A question of an MCP server');
}

/** What was kept with the interrupt of a question; `undefined` for any other interrupt. */
export function elicitationOf(interrupted: Json | undefined): Elicitation | undefined {
  if (!isJsonObject(interrupted) || !isJsonObject(interrupted.elicitation)) return undefined;
  const { elicitation } = interrupted;
  const isOurs = typeof elicitation.asked === 'string' && isJsonObject(elicitation.answers);
  // Written by `interruptData`.
  return isOurs ? (elicitation as unknown as Elicitation) : undefined;
}

/** The answers to the questions so far, the one of this restart included. */
export function answersOf(
  elicitation: Elicitation | undefined,
  resumed: Json | undefined,
): Readonly<Record<string, JsonObject>> {
  if (elicitation === undefined || !isJsonObject(resumed)) return elicitation?.answers ?? {};
  return { ...elicitation.answers, [elicitation.asked]: resumed };
}

/**
 * Refuses an answer that the server would not take. It is `{ action: 'accept', content }` with content that fits the schema, or
 * `{ action: 'decline' }` or `{ action: 'cancel' }`.
 */
export async function checkAnswer(resumed: Json, interrupted: Json): Promise<void> {
  if (elicitationOf(interrupted) === undefined) return;
  const { action, content } = isJsonObject(resumed) ? resumed : {};
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
  return new WaymarkError('INVALID_ARGUMENT', `This does not answer the question. ${problem}`);
}

/** A question, as it is asked by either protocol. */
export function questionOf(request: ElicitRequest['params']): Question {
  const { message } = request;
  if (!('requestedSchema' in request)) {
    throw new WaymarkError('UNIMPLEMENTED', 'Questions by URL are not supported.');
  }
  const schema = toJson(request.requestedSchema, 'The schema') as JsonObject;
  untrustedSchema(schema);
  return { message, schema };
}

/** The key of a question of a server of 2025, which has none: the same question again has the same key. */
export function keyOf(question: Question, count: number): string {
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
