import type { Interrupt, InterruptAnswer } from '../api/interrupts.ts';
import { requestKey } from '../protocol/messages.ts';

/** A tool call that waits for an answer, as `view.interrupts` shows it. */
export interface WaitingInterrupt extends Interrupt {
  /** Its answer, while other interrupts still wait for theirs. */
  readonly answer?: InterruptAnswer;
}

/** One answer, several, or a function that answers each interrupt that waits. */
export type GivenAnswers =
  | InterruptAnswer
  | readonly InterruptAnswer[]
  | ((request: WaitingInterrupt) => InterruptAnswer);

export function answersTo(
  interrupts: readonly WaitingInterrupt[],
  given: GivenAnswers,
): readonly InterruptAnswer[] {
  if (typeof given !== 'function') return 'length' in given ? given : [given];
  return interrupts.filter(({ answer }) => !answer).map((request) => given(request));
}

/** The interrupts with these answers noted; the same list if none of the answers is for one of them. */
export function withAnswers(
  interrupts: readonly WaitingInterrupt[],
  answers: readonly InterruptAnswer[],
): readonly WaitingInterrupt[] {
  const byKey = new Map(answers.map((answer) => [keyOf(answer), answer]));
  if (!interrupts.some(({ key }) => byKey.has(key))) return interrupts;
  return interrupts.map((interrupt) => {
    const answer = byKey.get(interrupt.key);
    return answer ? { ...interrupt, answer } : interrupt;
  });
}

/** The answers to send: to all interrupts, or none while one is missing. */
export function allAnswers(
  interrupts: readonly WaitingInterrupt[],
): readonly InterruptAnswer[] | undefined {
  const answers = interrupts.flatMap(({ answer }) => answer ?? []);
  return answers.length === interrupts.length ? answers : undefined;
}

function keyOf(answer: InterruptAnswer): string {
  return requestKey('toolResponse' in answer ? answer.toolResponse : answer.toolRequest);
}
