import {
  type Interrupt,
  type InterruptAnswer,
  interruptsOf,
  toResume,
} from '../../api/interrupts.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type { Terminal } from '../terminal.ts';
import { safe, shortJson } from '../text/format.ts';

/**
 * Asks about each interrupted tool call, and returns the input that answers them all; `undefined` at the end of the input.
 * "yes" runs the tool, "no" declines, and anything else is the answer in place of the tool.
 */
export async function askInterrupts(
  requests: readonly ToolRequestPart[],
  ask: Ask,
  terminal: Terminal,
): Promise<Input | undefined> {
  const interrupts = interruptsOf({ role: 'model', content: [...requests] });
  const answers = await askAll(interrupts, ask, terminal);
  return answers && { resume: toResume([...answers.values()]) };
}

async function askAll(
  interrupts: readonly Interrupt[],
  ask: Ask,
  terminal: Terminal,
): Promise<ReadonlyMap<Interrupt, InterruptAnswer> | undefined> {
  const answers = new Map<Interrupt, InterruptAnswer>();
  for (const interrupt of interrupts) {
    const answer = await askOne(interrupt, ask, terminal);
    if (answer === undefined) return undefined;
    answers.set(interrupt, answer);
  }
  return answers;
}

async function askOne(
  interrupt: Interrupt,
  ask: Ask,
  terminal: Terminal,
): Promise<InterruptAnswer | undefined> {
  const { interrupts, metadata: data, toolName, input } = interrupt;
  if (interrupts.length > 0) {
    const inside = await askAll(interrupts, ask, terminal);
    return inside && interrupt.resume((inner) => inside.get(inner) ?? inner.decline());
  }
  const { style } = terminal;
  if (isForm(data)) {
    const resumed = await askForm(data, ask, terminal);
    return resumed === undefined ? undefined : interrupt.approve({ resumed });
  }
  terminal.print(`${style.warn(`? ${safe(toolName)}`)} ${shortJson(input ?? {})}`);
  const question = questionOf(data);
  if (question !== '') terminal.print(`  ${question}`);
  for (;;) {
    const line = await ask('  yes, no, or an answer: ');
    if (line === undefined) return undefined;
    if (line.trim() !== '') return toAnswer(interrupt, line.trim());
  }
}

function questionOf(data: Json): string {
  if (data === null || data === true) return '';
  if (isJsonObject(data) && typeof data.question === 'string') return safe(data.question);
  return typeof data === 'string' ? safe(data) : shortJson(data, 400);
}

function toAnswer(interrupt: Interrupt, text: string): InterruptAnswer {
  if (/^y(es)?$/i.test(text)) return interrupt.approve();
  const [isNo, reason = ''] = /^no?\b[\s,.:]*(.*)$/is.exec(text) ?? [];
  if (isNo === undefined) return interrupt.respond(asJson(text));
  return interrupt.decline(reason === '' ? undefined : reason);
}

function asJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Asks for a line; `undefined` at the end of the input. */
export type Ask = (prompt: string) => Promise<string | undefined>;

interface Form {
  readonly message: string;
  readonly schema: JsonObject;
}

/** Whether a tool interrupted with the question of an MCP server. */
export function isForm(data: Json | undefined): data is Form & JsonObject {
  return (
    isJsonObject(data) &&
    isJsonObject(data.elicitation) &&
    isJsonObject(data.schema) &&
    typeof data.message === 'string'
  );
}

/** Asks for each field of a form; `undefined` at the end of the input. */
export async function askForm(
  { message, schema }: Form,
  ask: Ask,
  terminal: Terminal,
): Promise<Json | undefined> {
  terminal.print(`${terminal.style.warn('?')} ${safe(message)}`);
  const first = await ask('  Answer? yes or no: ');
  if (first === undefined) return undefined;
  if (/^no?\b/i.test(first.trim())) return { action: 'decline' };
  const fields = isJsonObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const content: Record<string, Json> = {};
  for (const [name, field] of Object.entries(fields)) {
    const about = isJsonObject(field) ? field : {};
    const line = await ask(`  ${labelOf(name, about, required.includes(name))}: `);
    if (line === undefined) return undefined;
    const value = line.trim() === '' ? about.default : parseField(line.trim(), about);
    if (value !== undefined) content[name] = value;
  }
  return { action: 'accept', content };
}

function labelOf(name: string, { title, enum: choices }: JsonObject, isRequired: boolean): string {
  const label = typeof title === 'string' ? `${title} (${name})` : name;
  const among = Array.isArray(choices) ? ` [${choices.join(', ')}]` : '';
  return safe(`${label}${among}${isRequired ? '' : ', optional'}`);
}

// The tool refuses values that do not fit, and the form is asked again.
function parseField(text: string, { type }: JsonObject): Json {
  if (type === 'number' || type === 'integer')
    return Number.isNaN(Number(text)) ? text : Number(text);
  if (type === 'boolean') return /^(y|yes|true)$/i.test(text);
  if (type === 'array') return text.split(',').map((each) => each.trim());
  return text;
}
