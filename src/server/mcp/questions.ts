import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import type { Output } from '../../protocol/turn.ts';
import type { Fields } from '../http/json-rpc.ts';
import type { Question } from '../http/question.ts';
import { canBeAsked, type McpRequest, peerOf } from './mcp-server.ts';
import { wordsResult } from './result.ts';
import type { StreamIo } from './stream-answer.ts';

const elicitResult = v.object({
  action: v.picklist(['accept', 'decline', 'cancel']),
  content: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
});

/** The answer to a question by the result of an elicitation; `undefined` while the user has not decided. */
export function answerOf(
  { key, form, accept, decline }: Question,
  response: unknown,
): InterruptAnswer | undefined {
  const parsed = v.safeParse(elicitResult, response);
  if (!parsed.success) throw notAnAnswer(key);
  const { action, content } = parsed.output;
  if (action === 'cancel') return undefined;
  if (action === 'decline') return decline('The user declined.');
  const value = form.read(toJson(content ?? {}, 'The answer') as JsonObject);
  if (value === undefined) throw notAnAnswer(key);
  return accept(value);
}

/** The params of `elicitation/create`. */
function paramsOf({ message, form }: Question): Fields {
  return { mode: 'form', message, requestedSchema: form.schema };
}

function notAnAnswer(key: string): WaymarkError {
  return invalid(
    `The answer to ${key} does not fit its form. Answer with { action: "accept", content } where content fits requestedSchema, or decline.`,
  );
}

interface OpenQuestions {
  readonly agent: Agent;
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly questions: readonly Question[];
}

/** Asks a client for answers: it sends the call again, with them and with the state. */
export function inputRequired(
  { states, c }: McpRequest,
  { agent, sessionId, snapshotId, questions }: OpenQuestions,
): Fields {
  const asked = { agent: agent.name, sessionId, snapshotId };
  return {
    resultType: 'input_required',
    inputRequests: toInputRequests(questions),
    requestState: states.sign(asked, c.get('caller').principal),
  };
}

export function toInputRequests(questions: readonly Question[]): Fields {
  const requests = questions.map((question) => [
    question.key,
    { method: 'elicitation/create', params: paramsOf(question) },
  ]);
  return Object.fromEntries(requests);
}

/**
 * The result for a client that cannot ask its user. The calling model gets no way to answer: it would approve what a person
 * is to approve.
 */
export function waitingResult(
  place: Pick<Output, 'sessionId' | 'snapshotId'>,
  interrupts: readonly Interrupt[],
): Fields {
  const names = interrupts.map(({ toolName }) => toolName).join(', ');
  return wordsResult(
    `The agent waits until a person answers: ${names}. They can answer where this session is shown; another message with this sessionId declines.`,
    { ...place, finishReason: 'interrupted' },
  );
}

/** Whether the user of a client of the 2025 revisions can be asked on the stream of this request. */
export function canAsk({ era, c }: McpRequest, { isStream }: StreamIo): boolean {
  return era.kind === 'legacy' && isStream && canBeAsked(peerOf(c));
}

/** Asks one question after the other, on the stream of the request; `undefined` when one is not answered. */
export async function* askUser(
  { dialogs, c }: McpRequest,
  questions: readonly Question[],
  { reader }: StreamIo,
): AsyncGenerator<readonly Fields[], readonly InterruptAnswer[] | undefined> {
  const answers: InterruptAnswer[] = [];
  for (const question of questions) {
    const { id, reply } = dialogs.ask(peerOf(c), reader);
    yield [{ jsonrpc: '2.0', id, method: 'elicitation/create', params: paramsOf(question) }];
    const { result } = await reply;
    const given = result && answerOf(question, result);
    if (given === undefined) return undefined;
    answers.push(given);
  }
  return answers;
}
