import * as v from 'valibot';
import type { InterruptAnswer } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import { type Question, questionsOf } from '../http/question.ts';
import type { A2aPart } from './parts.ts';
import type { Task } from './task.ts';

const byKey = v.object({ answers: v.record(v.string(), v.unknown()) });

/**
 * The answers of a message to the questions of a task. The answer to a single question is text, or data that fits its schema;
 * several are answered by `{ answers: { [key]: data } }`. `null` declines.
 */
export async function answersIn(
  { agent, tip }: Task,
  parts: readonly A2aPart[],
): Promise<readonly InterruptAnswer[]> {
  const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
  const data = parts.find((part) => part.data !== undefined)?.data;
  const keyed = v.safeParse(byKey, data);
  const answers = questions.map((question) => {
    if (keyed.success) {
      const { answers: all } = keyed.output;
      return Object.hasOwn(all, question.key)
        ? fromData(question, all[question.key] as Json)
        : undefined;
    }
    if (questions.length > 1) return undefined;
    if (data !== undefined) return fromData(question, data as Json);
    return fromText(
      question,
      parts
        .map(({ text }) => text ?? '')
        .join('')
        .trim(),
    );
  });
  const given = answers.filter((answer) => answer !== undefined);
  if (given.length === questions.length && given.length > 0) return given;
  throw notAnAnswer(questions);
}

function fromData({ form, accept, decline }: Question, data: Json): InterruptAnswer | undefined {
  if (data === null) return decline();
  if (!isJsonObject(data)) return undefined;
  const { required } = form.schema;
  const needed = Array.isArray(required) ? required : [];
  if (needed.some((name) => !Object.hasOwn(data, String(name)))) return undefined;
  const value = form.read(data);
  return value === undefined ? undefined : accept(value);
}

// Only a clear yes is a yes.
const yes = /^(yes|y|ok|okay|approve|approved|allow|true)[.!]?$/i;
const no = /^(no|n|decline|declined|deny|denied|reject|rejected|false)\b[.,:!]?\s*(.*)$/is;

function fromText(question: Question, text: string): InterruptAnswer | undefined {
  if (text === '') return undefined;
  const { properties } = question.form.schema;
  const fields = isJsonObject(properties) ? properties : {};
  if ('approved' in fields) {
    if (yes.test(text)) return fromData(question, { approved: true });
    const [, , reason = ''] = no.exec(text) ?? [];
    return no.test(text) ? question.decline(reason || undefined) : undefined;
  }
  const [only, ...others] = Object.entries(fields);
  const [name, field] = only ?? [];
  if (name !== undefined && others.length === 0 && isJsonObject(field) && field.type === 'string') {
    return fromData(question, { [name]: text });
  }
  const parsed = parseJson(text);
  if (parsed === undefined) return undefined;
  if (isJsonObject(parsed)) return fromData(question, parsed);
  return name !== undefined && others.length === 0
    ? fromData(question, { [name]: parsed } satisfies JsonObject)
    : undefined;
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function notAnAnswer(questions: readonly Question[]): WaymarkError {
  const keys = questions.map(({ key }) => key).join(', ');
  return new WaymarkError(
    'INVALID_ARGUMENT',
    questions.length === 1
      ? 'The message does not answer the question of the task. Send a data part that fits the schema of the question, or null to decline.'
      : `The task waits for several answers. Send one data part { "answers": { key: data } } with all of: ${keys}.`,
  );
}
