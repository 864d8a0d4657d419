import type { DatesAsText } from '../../core/json/dates.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { InferSchema, InferSchemaInput, Schema } from '../../core/schema/schema.ts';
import type { CompactOptions, HistorySelection } from '../../generate/answer/history.ts';
import type { OutputOf as GeneratedOutput } from '../../generate/answer/response.ts';
import type { GenerateSettings } from '../../generate/generate-options.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { SkillsOption } from '../../generate/skill/skills.ts';
import type { Template } from '../../generate/template.ts';
import { tool as plainTool, type Tool, type ToolOptions } from '../../generate/tool/tool.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import type { Message } from '../../protocol/message.ts';
import type { Session } from '../../session/session.ts';
import type { WorkspaceFolder } from '../../workspace/contract/contract.ts';
import type { Agent } from '../contract/agent.ts';
import type { AgentHandler } from '../contract/handler.ts';
import type { AgentOptionsBase, CustomOf } from '../contract/options.ts';

/** Options of a prompt agent; `promptInput` is the input of its existing prompt. */
export interface AgentOptions<
  State extends Schema | undefined,
  Initial,
  Status extends Schema | undefined,
  Output extends Schema | undefined,
  Argument,
> extends AgentOptionsBase<State, Initial, Status>,
    Omit<GenerateSettings<Output, NoInfer<CustomOf<State, Initial>>>, 'limits'> {
  /** The system message: rendered once per turn, never stored. `{{@state.field}}` reads the custom state. */
  readonly system?: Template<undefined, CustomOf<State, Initial>>;
  /** An existing prompt, whose settings are defaults that the agent's own options override. */
  readonly prompt?:
    | Prompt<Argument, Schema | undefined, NoInfer<CustomOf<State, Initial>>>
    | string;
  /** The input of the existing prompt, validated with its schema at definition. */
  readonly promptInput?: NoInfer<Argument>;
  /** Messages at the beginning of each session; stored once. */
  readonly messages?: readonly Message[];
  /** Selects which of the stored messages are sent to the model. Does not change what is stored. @default all */
  readonly history?: HistorySelection;
  /**
   * Summarizes the older messages of a long conversation for the model, also when the provider rejects a request as too long.
   * The summary is stored with the turn, so that every process and branch finds it; the messages stay.
   */
  readonly compact?: CompactOptions;
  /**
   * Skills in the format of agentskills.io: a folder with a folder for each skill, an MCP server (`mcp(…)`), or a list of them. The prompt
   * has their names and descriptions, and the model loads the rest with tools. `[]`: none. @default the app's skills
   */
  readonly skills?: SkillsOption;
}

/**
 * Declares an agent over a prompt. All types are inferred.
 *
 * @example
 * const support = app.defineAgent({ name: 'support', system: 'Help the user.', tools: [findOrder] });
 * const { text } = await support.run('Where is my order?');
 */
export type DefineAgent = <
  State extends Schema | undefined = undefined,
  Initial extends InferSchema<State, Json | undefined> | undefined = undefined,
  Status extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  Argument = JsonObject | undefined,
>(
  options: AgentOptions<State, Initial, Status, Output, Argument>,
) => Agent<{
  custom: CustomOf<State, Initial>;
  status: InferSchema<Status, Json | undefined>;
  output: GeneratedOutput<Output>;
}>;

/**
 * Declares an agent with a turn loop of your own. All types are inferred.
 *
 * @example
 * const echo = app.defineCustomAgent({ name: 'echo' }, async (session) => {
 *   await session.run(async ({ message }) => {
 *     if (message) session.addMessages({ role: 'model', content: message.content });
 *   });
 * });
 */
export type DefineCustomAgent = <
  State extends Schema | undefined = undefined,
  Initial extends InferSchema<State, Json | undefined> | undefined = undefined,
  Status extends Schema | undefined = undefined,
>(
  options: AgentOptionsBase<State, Initial, Status>,
  handler: AgentHandler<CustomOf<State, Initial>, InferSchema<Status, Json | undefined>>,
) => Agent<{
  custom: CustomOf<State, Initial>;
  status: InferSchema<Status, Json | undefined>;
  output: Json | undefined;
}>;

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
  Returned extends InferSchemaInput<Output, unknown> = InferSchemaInput<Output, unknown>,
>(
  options: ToolOptions<Input, Output, State>,
  fn: (
    input: InferSchema<Input, JsonObject>,
    context: ToolContext & {
      /**
       * The session of the turn that the tool was called in, typed by the tool's `state`. Outside an agent, as in a plain
       * `generate`, there is none: using it is FAILED_PRECONDITION.
       */
      readonly session: Session<InferSchema<State, unknown>>;
      /** The files of the agent's workspace; `undefined` if it has none. */
      readonly workspace?: WorkspaceFolder;
    },
  ) => Returned | Promise<Returned>,
) => Tool<
  InferSchemaInput<Input, JsonObject>,
  InferSchema<Output, DatesAsText<Returned>>,
  InferSchema<State, unknown>
>;

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
