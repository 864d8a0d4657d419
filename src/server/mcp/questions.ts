import * as v from 'valibot';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { Fields } from './errors.ts';
import { type Form, formFor } from './form.ts';

/** An interrupt as a question to the user of a client. */
export interface Question {
  /** Names the question in the whole session: `snapshotId:ref`. */
  readonly key: string;
  /** The params of `elicitation/create`. */
  readonly params: Fields;
  /** The answer to the interrupt; `undefined` while the user has not decided. */
  answer(response: unknown): InterruptAnswer | undefined;
}

const longestMessage = 2000;

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
  const tools = await toolsOf(agent);
  return interrupts.map((interrupt) =>
    toQuestion(`${snapshotId}:${interrupt.ref ?? interrupt.toolName}`, interrupt, tools),
  );
}

async function toolsOf(agent: Agent): Promise<readonly ToolInfo[]> {
  try {
    return (await internalsOf(agent).spec.describe?.())?.tools ?? [];
  } catch {
    return [];
  }
}

function toQuestion(key: string, interrupt: Interrupt, tools: readonly ToolInfo[]): Question {
  const tool = tools.find(({ name }) => name === interrupt.toolName);
  const { form, accept } = askedBy(interrupt, tool);
  const message = messageOf(interrupt).slice(0, longestMessage);
  return {
    key,
    params: { mode: 'form', message, requestedSchema: form.schema },
    answer(response) {
      const parsed = v.safeParse(elicitResult, response);
      if (!parsed.success) throw notAnAnswer(key);
      const { action, content } = parsed.output;
      if (action === 'cancel') return undefined;
      if (action === 'decline') return interrupt.decline('The user declined.');
      const value = form.read(toJson(content ?? {}, 'The answer') as JsonObject);
      if (value === undefined) throw notAnAnswer(key);
      return accept(value);
    },
  };
}

interface Ways {
  readonly form: Form;
  readonly accept: (value: Json) => InterruptAnswer;
}

function askedBy(interrupt: Interrupt, tool: ToolInfo | undefined): Ways {
  const { metadata } = interrupt;
  if (tool?.interrupt === true) {
    return { form: formFor(tool.outputSchema), accept: interrupt.respond };
  }
  // The tool itself waits for data, such as the elicitation of another MCP server.
  if (isJsonObject(metadata) && isJsonObject(metadata.schema)) {
    return {
      form: formFor(metadata.schema),
      accept: (resumed) => interrupt.approve({ resumed }),
    };
  }
  return { form: approval, accept: (value) => decided(interrupt, value) };
}

const approval: Form = {
  schema: {
    type: 'object',
    properties: {
      approved: { type: 'boolean', title: 'Approve' },
      reason: { type: 'string', title: 'Reason' },
    },
    required: ['approved'],
  },
  read: (content) => content,
};

// Only a clear yes is a yes.
function decided(interrupt: Interrupt, value: Json): InterruptAnswer {
  const { approved, reason } = isJsonObject(value) ? value : {};
  if (approved !== true) {
    return interrupt.decline(typeof reason === 'string' && reason !== '' ? reason : undefined);
  }
  const inside = innerRequests(interrupt.metadata);
  if (inside.length === 0) return interrupt.approve();
  const restart = inside.map(({ toolRequest }) => ({ toolRequest, metadata: { resumed: true } }));
  return interrupt.approve({ resumed: { restart } as unknown as Json });
}

/** The requests of an interrupted sub-agent, which are approved together. */
function innerRequests(data: Json): readonly ToolRequestPart[] {
  if (!isJsonObject(data) || !Array.isArray(data.requests) || !('agent' in data)) return [];
  return data.requests.filter(
    (each: unknown): each is ToolRequestPart =>
      typeof each === 'object' && each !== null && 'toolRequest' in each,
  );
}

function messageOf({ toolName, input, metadata }: Interrupt): string {
  const said = wordsOf(metadata);
  if (said !== undefined) return said;
  const inside = innerRequests(metadata).map(({ toolRequest }) => toolRequest);
  const calls = inside.length > 0 ? inside : [{ name: toolName, input }];
  const shown = calls.map((call) => `${call.name} ${JSON.stringify(call.input ?? {})}`);
  return `Waits for your answer: ${shown.join(', ')}`;
}

function wordsOf(data: Json): string | undefined {
  if (typeof data === 'string') return data;
  if (!isJsonObject(data)) return undefined;
  const { message, question } = data;
  return [message, question].find((text): text is string => typeof text === 'string');
}

function notAnAnswer(key: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `The answer to ${key} does not fit its form. Answer with { action: "accept", content } where content fits requestedSchema, or decline.`,
  );
}
