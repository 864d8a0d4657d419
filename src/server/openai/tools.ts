import { type JsonObject, toJson } from '../../core/json/json.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { CallerToolInfo } from '../../protocol/turn.ts';
import { short } from '../http/errors.ts';
import { badRequest } from './errors.ts';
import type { FunctionTool } from './shapes.ts';

/**
 * The functions of a request as tools that the caller executes. One with the name of a tool of the agent is left out: the
 * agent's own counts, and the caller needs the function to answer when that tool waits for an approval.
 */
export function callerToolsOf(
  given: readonly FunctionTool[],
  own: readonly ToolInfo[],
): readonly CallerToolInfo[] {
  return given.flatMap(({ type, name, description, parameters }, at) => {
    if (type !== 'function' || name === undefined) {
      throw badRequest(
        `Only functions with a name can be sent as tools, not ${short(type)}. Tools that run on the server belong to the agent's definition.`,
        { param: `tools[${at}]`, code: 'unsupported_value' },
      );
    }
    if (own.some((tool) => tool.name === name)) return [];
    const schema = parameters ?? { type: 'object', properties: {} };
    return [
      {
        name,
        ...(typeof description === 'string' && { description }),
        inputSchema: toJson(schema, 'parameters') as JsonObject,
      },
    ];
  });
}
