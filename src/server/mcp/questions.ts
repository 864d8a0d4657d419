import * as v from 'valibot';
import type { Agent } from '../../agent/spec/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import { type Question as OpenQuestion, questionsOf as openQuestions } from '../http/question.ts';
import type { Fields } from './errors.ts';

/** An interrupt as a question to the user of a client. */
export interface Question {
  /** Names the question in the whole session: `snapshotId:ref`. */
  readonly key: string;
  /** The params of `elicitation/create`. */
  readonly params: Fields;
  /** The answer to the interrupt; `undefined` while the user has not decided. */
  answer(response: unknown): InterruptAnswer | undefined;
}

const elicitResult = v.object({
  action: v.picklist(['accept', 'decline', 'cancel']),
  content: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
});

/** The interrupts of a snapshot as questions. */
export async function questionsOf(
  agent: Agent,
  snapshotId: string,
  interrupts: readonly Interrupt[],
): Promise<readonly Question[]> {
  return (await openQuestions(agent, snapshotId, interrupts)).map(toElicitation);
}

function toElicitation({ key, message, form, accept, decline }: OpenQuestion): Question {
  return {
    key,
    params: { mode: 'form', message, requestedSchema: form.schema },
    answer(response) {
      const parsed = v.safeParse(elicitResult, response);
      if (!parsed.success) throw notAnAnswer(key);
      const { action, content } = parsed.output;
      if (action === 'cancel') return undefined;
      if (action === 'decline') return decline('The user declined.');
      const value = form.read(toJson(content ?? {}, 'The answer') as JsonObject);
      if (value === undefined) throw notAnAnswer(key);
      return accept(value);
    },
  };
}

function notAnAnswer(key: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `The answer to ${key} does not fit its form. Answer with { action: "accept", content } where content fits requestedSchema, or decline.`,
  );
}
