import * as v from 'valibot';
import { isJsonObject, type Json, type JsonObject, toJson } from '../core/json/json.ts';
import { untrustedSchema } from '../core/schema/untrusted-schema.ts';
import type { OutgoingMessage } from './client.ts';
import { questions as questionsShape, type RemoteQuestion, type RemoteTask } from './shapes.ts';

/** The task that waits for an answer, kept with the interrupt. */
const handle = v.object({
  taskId: v.string(),
  contextId: v.optional(v.string()),
  /** The keys of the questions, where the remote agent has given them. */
  keys: v.optional(v.array(v.string())),
});
export interface TaskHandle extends v.InferOutput<typeof handle> {}

const longestMessage = 4_000;

/** What the tool interrupts with: the question for a person, the schema of the answer, and the task. */
export function interruptData(task: RemoteTask): Json {
  const { id: taskId, contextId, status } = task;
  const parts = status.message?.parts ?? [];
  const asked = questionsIn(parts.map(({ data }) => data));
  const text = parts
    .map((part) => part.text ?? '')
    .filter(Boolean)
    .join('\n');
  const message = text || 'The remote agent needs input.';
  const schema = schemaOf(asked);
  untrustedSchema(schema);
  return toJson(
    {
      message: message.slice(0, longestMessage),
      schema,
      a2a: {
        taskId,
        ...(contextId && { contextId }),
        ...(asked.length > 0 && { keys: asked.map(({ key }) => key) }),
      },
    },
    'The question of the remote agent',
  );
}

/** The task of a call that was interrupted before; `undefined` the first time. */
export function handleOf(interrupted: Json | undefined): TaskHandle | undefined {
  if (interrupted === undefined || !isJsonObject(interrupted)) return undefined;
  const parsed = v.safeParse(handle, interrupted.a2a);
  return parsed.success ? parsed.output : undefined;
}

function questionsIn(data: readonly unknown[]): readonly RemoteQuestion[] {
  for (const each of data) {
    const parsed = v.safeParse(questionsShape, each);
    if (parsed.success) return parsed.output.questions;
  }
  return [];
}

function schemaOf(asked: readonly RemoteQuestion[]): JsonObject {
  const [first, ...others] = asked;
  if (!first) {
    return { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };
  }
  if (others.length === 0) return first.schema as JsonObject;
  const properties = Object.fromEntries(asked.map(({ key, schema }) => [key, schema]));
  return { type: 'object', properties, required: asked.map(({ key }) => key) } as JsonObject;
}

/** The answer of a person as a message. `true` approves. */
export function answerMessage(
  { keys = [] }: TaskHandle,
  resumed: Json,
): Pick<OutgoingMessage, 'text' | 'data'> {
  if (typeof resumed === 'string') return { text: resumed };
  if (typeof resumed === 'boolean') {
    return keys.length === 1 ? { data: { approved: resumed } } : { text: resumed ? 'yes' : 'no' };
  }
  if (keys.length > 1) return { data: { answers: resumed } };
  // An agent that gave no schema expects text.
  if (keys.length === 0 && isJsonObject(resumed) && typeof resumed.answer === 'string') {
    return { text: resumed.answer };
  }
  return { data: resumed };
}
