import { toErrorBody } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import { hasMetrics, recordValue } from '../core/metrics.ts';
import type { Span } from '../core/trace.ts';
import { genAi, attributes as names } from '../core/trace-names.ts';
import type { Part } from '../protocol/message.ts';
import { generateScope } from './hooks.ts';

/** How a tool call ended: with its output, with an error, or waiting for an answer. */
type ToolEnd = { readonly output?: Json; readonly error?: unknown };

const ignore = (): void => {};

/** Measures a tool call for its span and the metrics. The returned function takes its end. */
export function watchTool(
  name: string,
  span: Span,
  input: Json | undefined,
): (end: ToolEnd) => void {
  if (!span.recording && !hasMetrics()) return ignore;
  const startedAt = performance.now();
  return ({ output, error }) => {
    recordValue('gen_ai.execute_tool.duration', (performance.now() - startedAt) / 1000, {
      [genAi.toolName]: name,
      [genAi.toolType]: 'function',
      ...(error !== undefined && { [names.errorType]: toErrorBody(error).status }),
    });
    showContent(name, span, input, output);
  };
}

// Only with `telemetry.content`, and only what the agent's transform lets out of such messages.
function showContent(
  name: string,
  span: Span,
  input: Json | undefined,
  output: Json | undefined,
): void {
  const show = generateScope.get()?.hooks?.showMessages;
  if (show === undefined || !span.recording) return;
  const shown = (role: 'model' | 'tool', part: Part): Part | undefined =>
    show([{ role, content: [part] }])[0]?.content[0];
  const request = shown('model', { toolRequest: { name, ...(input !== undefined && { input }) } });
  const response =
    output === undefined ? undefined : shown('tool', { toolResponse: { name, output } });
  span.setAttributes({
    [genAi.toolArguments]:
      request !== undefined && 'toolRequest' in request
        ? JSON.stringify(request.toolRequest.input)
        : undefined,
    [genAi.toolResult]:
      response !== undefined && 'toolResponse' in response
        ? JSON.stringify(response.toolResponse.output)
        : undefined,
  });
}
