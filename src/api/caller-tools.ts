import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { JsonSchema, Schema } from '../core/schema/schema.ts';
import type { CallerToolInfo, Input } from '../protocol/turn.ts';
import type { CallerTool } from './types.ts';

/** The input with the tools of its call, their schemas as JSON Schema. Where the input is parsed, they are checked. */
export function withCallerTools(
  input: Input,
  tools: readonly CallerTool[] | undefined,
  toJsonSchema: (schema: Schema) => JsonSchema,
): Input {
  if (tools === undefined) return input;
  if (!Array.isArray(tools)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      '`tools` must be an array of { name, inputSchema }.',
    );
  }
  const infos = tools.map(
    (tool: CallerTool): CallerToolInfo => ({
      ...tool,
      // Callers in plain JavaScript have no types; what has no schema is refused.
      inputSchema: toJsonSchema(tool?.inputSchema) as JsonObject,
    }),
  );
  return { ...input, tools: infos };
}
