import type { Agent } from '../../agent/spec/agent.ts';
import type { Interrupt } from '../../api/interrupts.ts';
import type { Output } from '../../protocol/turn.ts';
import type { Caller } from '../http/auth.ts';
import type { Fields } from './errors.ts';
import type { McpServer } from './mcp-server.ts';
import type { Question } from './questions.ts';
import { wordsResult } from './result.ts';

/** The questions of an interrupted snapshot. */
export interface OpenQuestions {
  readonly agent: Agent;
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly questions: readonly Question[];
}

/** Asks a client for answers: it sends the call again, with them and with the state. */
export function inputRequired(
  { states }: McpServer,
  { agent, sessionId, snapshotId, questions }: OpenQuestions,
  { principal }: Caller,
): Fields {
  return {
    resultType: 'input_required',
    inputRequests: toInputRequests(questions),
    requestState: states.sign({ agent: agent.name, sessionId, snapshotId }, principal),
  };
}

/** Questions by their keys. */
export function toInputRequests(questions: readonly Question[]): Fields {
  const requests = questions.map(({ key, params }) => [
    key,
    { method: 'elicitation/create', params },
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
