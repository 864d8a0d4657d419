import type { Agent } from '../../agent/contract/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import { jsonIn } from './body.ts';
import { toolsOf } from './served-app.ts';

/** An interrupt as a question to a person. */
export interface Question {
  /** Names the question in the whole session: `snapshotId:ref`. */
  readonly key: string;
  readonly interrupt: Interrupt;
  /** The tool that asks; `undefined` for one of the caller. */
  readonly tool: ToolInfo | undefined;
  readonly message: string;
  readonly form: Form;
  /** The answer, for a value that the form has read. */
  readonly accept: (value: Json) => InterruptAnswer;
  readonly decline: Interrupt['decline'];
}

const maxMessageLength = 2000;

export async function questionsOf(
  agent: Agent,
  snapshotId: string,
  interrupts: readonly Interrupt[],
): Promise<readonly Question[]> {
  const tools = await toolsOf(agent);
  return interrupts.map((interrupt) => {
    const tool = tools.find(({ name }) => name === interrupt.toolName);
    const { kind, schema } = askedBy(interrupt, tool);
    return {
      key: `${snapshotId}:${interrupt.ref ?? interrupt.toolName}`,
      interrupt,
      tool,
      message: messageOf(interrupt).slice(0, maxMessageLength),
      form: kind === 'approval' ? approval : formFor(schema),
      // Only a clear yes is a yes.
      accept: (value) => answerBy(interrupt, tool, value) ?? interrupt.decline(),
      decline: interrupt.decline,
    };
  });
}

/** The subject of an interrupt: the output of a tool that only asks, data that a tool waits for, or an approval. */
export function askedBy(
  { metadata }: Interrupt,
  tool: ToolInfo | undefined,
): { readonly kind: 'output' | 'data' | 'approval'; readonly schema?: JsonObject | undefined } {
  if (tool?.interrupt === true) return { kind: 'output', schema: tool.outputSchema };
  // The tool itself waits for data, such as the elicitation of another MCP server.
  if (isJsonObject(metadata) && isJsonObject(metadata.schema)) {
    return { kind: 'data', schema: metadata.schema };
  }
  return { kind: 'approval' };
}

/** The answer to an interrupt by a value; `undefined` for an approval whose value is neither a clear yes nor a clear no. */
export function answerBy(
  interrupt: Interrupt,
  tool: ToolInfo | undefined,
  value: Json,
): InterruptAnswer | undefined {
  const { kind } = askedBy(interrupt, tool);
  if (kind === 'output') return interrupt.respond(value);
  return kind === 'data' ? interrupt.approve({ resumed: value }) : decideApproval(interrupt, value);
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

function messageOf({ toolName, input, metadata, interrupts }: Interrupt): string {
  const said = wordsOf(metadata);
  if (said !== undefined) return said;
  const inside = interrupts.flatMap(callsOf);
  const calls = inside.length > 0 ? inside : [{ name: toolName, input }];
  const shown = calls.map((call) => `${call.name} ${JSON.stringify(call.input ?? {})}`);
  return `Waits for your answer: ${shown.join(', ')}`;
}

/** The tool calls that wait, inside sub-agents of any depth. */
function callsOf({ interrupts, request }: Interrupt): readonly ToolRequest[] {
  return interrupts.length > 0 ? interrupts.flatMap(callsOf) : [request.toolRequest];
}

function wordsOf(data: Json): string | undefined {
  if (typeof data === 'string') return data;
  if (!isJsonObject(data)) return undefined;
  const { message, question } = data;
  return [message, question].find((text): text is string => typeof text === 'string');
}

/** A form for a person, and how its content becomes a value. */
interface Form {
  /** An object of plain fields: all that MCP lets a server ask for. */
  readonly schema: JsonObject;
  read(content: JsonObject): Json | undefined;
}

/** A form whose value fits a schema: field by field where MCP can express it, as one field, or as JSON. */
function formFor(schema: JsonObject | undefined): Form {
  if (schema === undefined) return oneField({ type: 'string', title: 'Answer' }, (text) => text);
  if (isPlainObject(schema)) {
    const { properties, required } = schema;
    return {
      schema: { type: 'object', properties: properties ?? {}, ...(required && { required }) },
      read: (content) => content,
    };
  }
  if (isField(schema)) return oneField({ title: 'Answer', ...schema }, (value) => value);
  const description = `JSON that fits ${JSON.stringify(schema).slice(0, 1000)}`;
  return oneField({ type: 'string', title: 'Answer', description }, (value) =>
    typeof value === 'string' ? jsonIn(value) : value,
  );
}

function oneField(field: JsonObject, read: (value: Json) => Json | undefined): Form {
  return {
    schema: { type: 'object', properties: { answer: field }, required: ['answer'] },
    read: ({ answer }) => (answer === undefined ? undefined : read(answer)),
  };
}

function isPlainObject({ type, properties = {} }: JsonObject): boolean {
  return (
    type === 'object' &&
    isJsonObject(properties) &&
    Object.values(properties).every((field) => isJsonObject(field) && isField(field))
  );
}

function isField({ type, enum: values, items }: JsonObject): boolean {
  switch (type) {
    case 'string':
      return values === undefined || areTexts(values);
    case 'number':
    case 'integer':
    case 'boolean':
      return values === undefined;
    case 'array':
      return isJsonObject(items) && items.type === 'string' && areTexts(items.enum);
    default:
      return false;
  }
}

function areTexts(values: Json | undefined): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === 'string');
}

/**
 * The answer to a tool that waits for approval, from `{ approved, reason }`; `undefined` for anything that is neither a clear yes
 * nor a clear no.
 */
export function decideApproval(interrupt: Interrupt, value: Json): InterruptAnswer | undefined {
  const { approved, reason } = isJsonObject(value) ? value : {};
  if (approved === false) {
    return interrupt.decline(typeof reason === 'string' && reason !== '' ? reason : undefined);
  }
  if (approved !== true) return undefined;
  return interrupt.approve();
}
