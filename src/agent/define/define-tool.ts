import type { Schema } from '../../core/schema/schema.ts';
import {
  tool as plainTool,
  type Tool,
  type ToolArgument,
  type ToolCustom,
  type ToolInput,
  type ToolOptions,
  type ToolResult,
  type ToolReturn,
} from '../../generate/tool/tool.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import type { Session } from '../../session/session.ts';

/** Additional fields in the context of every tool of an app. */
export interface ToolExtras<Custom = unknown> {
  /**
   * The session of the turn that the tool was called in, typed by the tool's `state`. Outside an agent, as in a plain
   * `generate`, there is none: using it is FAILED_PRECONDITION.
   */
  readonly session: Session<Custom>;
}

/**
 * Declares a tool. All types are inferred; `state` types the session.
 *
 * @example
 * const note = app.defineTool(
 *   { name: 'note', description: 'Notes a taste.', input: z.object({ what: z.string() }), state: trip },
 *   ({ what }, { session }) => session.updateCustom((draft) => void draft.likes.push(what)),
 * );
 */
export type DefineTool = <
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  State extends Schema | undefined = undefined,
  Returned extends ToolReturn<Output> = ToolReturn<Output>,
>(
  options: ToolOptions<Input, Output, State>,
  fn: (
    input: ToolInput<Input>,
    context: ToolContext & ToolExtras<ToolCustom<State>>,
  ) => Returned | Promise<Returned>,
) => Tool<ToolArgument<Input>, ToolResult<Output, Returned>, ToolCustom<State>>;

/**
 * Creates a tool from a function. It is not registered by name: pass it to the agents and calls that use it.
 *
 * @example
 * const weather = tool(
 *   { name: 'weather', description: 'The weather of a city.', input: z.object({ city: z.string() }) },
 *   async ({ city }) => await forecast(city),
 * );
 */
// An app adds the session to the context of every tool call.
export const tool: DefineTool = plainTool as DefineTool;
