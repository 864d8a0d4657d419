import { type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import { toJsonSchema } from '../../core/schema/schema.ts';
import type { GenerateSettings } from '../../generate/generate-options.ts';
import type { Generator } from '../../generate/generator.ts';
import { outputOptionsOf } from '../../generate/output/output.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { AgentInfo, ToolInfo } from '../../protocol/requests.ts';
import type { Render } from './prompt-settings.ts';

/** The model, the tools and the output that a request would have now. */
export async function describe(
  render: Render,
  generator: Generator,
  state: Json | undefined,
): Promise<Pick<AgentInfo, 'model' | 'tools' | 'outputSchema'>> {
  const { model, tools, output } = await render({ state, context: {} });
  const outputSchema = outputSchemaOf(output);
  const scope = { context: {}, signal: new AbortController().signal, report: () => {} };
  const resolved = await generator.resolveTools(tools, scope);
  return {
    ...(outputSchema && { outputSchema }),
    model: generator.resolveModel(model).name,
    tools: [...resolved.tools.values()].map(toolInfoOf),
  };
}

/** The schema of a structured output as JSON Schema. */
export function outputSchemaOf(output: GenerateSettings['output']): JsonObject | undefined {
  const { schema } = output === undefined ? {} : outputOptionsOf(output);
  if (!schema) return undefined;
  return toJson(toJsonSchema(schema, 'output'), 'outputSchema') as JsonObject;
}

function toolInfoOf({ definition, metadata }: Tool): ToolInfo {
  const { name, description, inputSchema, outputSchema } = definition;
  return {
    name,
    ...(description !== undefined && { description }),
    inputSchema: toJson(inputSchema, 'inputSchema') as JsonObject,
    ...(outputSchema && { outputSchema: toJson(outputSchema, 'outputSchema') as JsonObject }),
    ...(metadata?.interrupt === true && { interrupt: true }),
  };
}
