import type { Message } from '../../../src/client/index.ts';
import { isRecord } from './json.ts';
import type { ModelCall } from './model-calls.ts';

/** A model call as TypeScript that makes it again with `app.generate`. Tools are asked for, but not run. */
export function toCode({ model, request }: ModelCall): string {
  const { messages, tools = [], toolChoice, config, output } = request;
  const [first, ...rest] = messages;
  const isSystem = first?.role === 'system';
  const { headers: _, ...settings } = config ?? {};
  const options = {
    model,
    ...(Object.keys(settings).length > 0 && { config: settings }),
    ...(isSystem && { system: toContent(first) }),
    messages: (isSystem ? rest : messages).map(({ role, content }) => ({ role, content })),
    ...(tools.length > 0 && { tools: tools.map(({ name }) => name) }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(output?.schema !== undefined && { output: { schema: output.schema } }),
    returnToolRequests: true,
  };
  return `const { message, usage } = await app.generate(${literal(options)});\n`;
}

function toContent({ content }: Message): unknown {
  const [part, ...more] = content;
  return part && 'text' in part && more.length === 0 ? part.text : content;
}

/** A JSON value as a literal of TypeScript, with two spaces for each level. */
export function literal(value: unknown, indent = ''): string {
  const inner = `${indent}  `;
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => literal(item, inner));
    return lines('[', items, ']', indent);
  }
  if (!isRecord(value)) return JSON.stringify(value) ?? 'undefined';
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .map(([name, field]) => `${keyText(name)}: ${literal(field, inner)}`);
  return lines('{', fields, '}', indent);
}

function lines(open: string, items: readonly string[], close: string, indent: string): string {
  if (items.length === 0) return open + close;
  const isBraced = open === '{';
  const line = isBraced ? `{ ${items.join(', ')} }` : `[${items.join(', ')}]`;
  if (line.length + indent.length <= 80 && !line.includes('\n')) return line;
  return `${open}\n${items.map((item) => `${indent}  ${item},\n`).join('')}${indent}${close}`;
}

function keyText(name: string): string {
  if (name === '__proto__') return "['__proto__']";
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}

function quoted(text: string): string {
  const body = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${body.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`;
}
