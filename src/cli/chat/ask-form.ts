import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Terminal } from '../terminal.ts';
import { safe } from '../text/safe.ts';

/** Asks for a line; `undefined` at the end of the input. */
export type Ask = (prompt: string) => Promise<string | undefined>;

/** The question of an MCP server: what it says, and the schema of the answer. */
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

// What does not fit is refused by the tool, and the form is asked again.
function parseField(text: string, { type }: JsonObject): Json {
  if (type === 'number' || type === 'integer')
    return Number.isNaN(Number(text)) ? text : Number(text);
  if (type === 'boolean') return /^(y|yes|true)$/i.test(text);
  if (type === 'array') return text.split(',').map((each) => each.trim());
  return text;
}
