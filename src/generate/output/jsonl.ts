import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { badOutput, type OutputFormat } from './format.ts';

/** One JSON value a line, which makes an array; while it grows, the lines that are complete. */
export const jsonlFormat: OutputFormat = {
  name: 'jsonl',
  request: () => ({ format: 'jsonl' }),
  instructions: (schema) => {
    const items = itemSchema(schema);
    const fit = items ? ` Each must fit this JSON Schema:\n${JSON.stringify(items)}` : '';
    return `Answer with JSON values only, one on each line, without a code fence and without an array around them.${fit}`;
  },
  parse: (text) => linesOf(text).map((line) => readLine(line, text)),
  parsePartial(text) {
    const end = text.lastIndexOf('\n');
    if (end < 0) return [];
    return linesOf(text.slice(0, end)).flatMap((line) => {
      try {
        return [JSON.parse(line) as Json];
      } catch {
        return [];
      }
    });
  },
};

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('```'));
}

function readLine(line: string, text: string): Json {
  try {
    return JSON.parse(line) as Json;
  } catch (cause) {
    throw badOutput('jsonl', text, `has a line that is not JSON (${line.slice(0, 80)})`, cause);
  }
}

function itemSchema(schema: JsonSchema | undefined): unknown {
  return schema?.items;
}
