import { invalid, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { type DatesAsText, toJsonResult } from '../../core/json/dates.ts';
import { defined, type Json, type JsonObject } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import {
  type InferSchema,
  type InferSchemaInput,
  parse,
  parseSync,
  type Schema,
  toJsonSchema,
} from '../../core/schema/schema.ts';
import type { ToolDefinition } from '../model.ts';
import { type InterruptDeadline, requireApproval, type ToolContext } from './tool-context.ts';
import { checkUndo, effectHookOf, type ToolEffect, type Undo, type UndoAction } from './undo.ts';

/** How a tool is declared. */
export interface ToolOptions<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  State extends Schema | undefined = undefined,
> {
  /** At most 64 letters, digits, `_` and `-`, which all providers accept. */
  readonly name: string;
  /** Tells the model what the tool does and when to use it. */
  readonly description: string;
  /** The schema of the input. */
  readonly input?: Input;
  /** The schema of the output. */
  readonly output?: Output;
  /** The schema of the custom state that the tool works on. It types `session`; only agents with a matching state accept the tool. */
  readonly state?: State;
  /**
   * Whether a person must approve a call before it runs: always, or when the function returns `true`. The call interrupts with
   * `{ approval: { tool, input } }`.
   * @default false
   */
  readonly needsApproval?:
    | boolean
    | ((input: InferSchema<Input, JsonObject>, context: ToolContext) => boolean | Promise<boolean>);
  /**
   * Undoes a call in the other system, such as cancelling a booking. `agent.restore(…, { undo })` calls it, also later and in another
   * process. It gets a key of its own, which is the same in every attempt.
   */
  readonly undo?: Undo<InferSchema<Input, JsonObject>, InferSchema<Output, Json>>;
  /**
   * Says that a call has no effect in another system (`'none'`), or only in the workspace (`'workspace'`): there is nothing to undo.
   * @default the call has one
   */
  readonly effect?: ToolEffect;
  /** Your own data about the tool. */
  readonly metadata?: JsonObject;
}

/** The state that a tool works on. */
interface ToolState<Custom> {
  /** The schema of the custom state. */
  readonly schema: Schema;
  /** INVALID_ARGUMENT if the tool cannot work on this state. */
  readonly check: (custom: Custom) => void;
}

/** Something a model can ask to be run. `State` is what the custom state of the agent must be. */
export interface Tool<Input = unknown, Output = unknown, State = unknown> {
  /** The name. */
  readonly name: string;
  /** The purpose of the tool. */
  readonly description: string;
  /** Your own data about the tool. */
  readonly metadata?: JsonObject;
  /** The effect of a call on other systems; absent: it has one. */
  readonly effect?: ToolEffect;
  /** Undoes a call; absent if that is not possible. */
  readonly undo?: UndoAction;
  /** Absent if the tool works with any agent. */
  readonly state?: ToolState<State>;
  /** The tool as a model sees it. */
  readonly definition: ToolDefinition;
  /** Checks the input, runs the tool and checks the output. */
  run(input: Input, context: ToolContext): Promise<Output>;
  /** Checks an input, such as one that a person has edited before approving the call. */
  parseInput(value: unknown): Promise<unknown>;
  /** Checks what a restart after an interrupt brings along, so that a wrong answer leaves the interrupt open. */
  checkResumed?(resumed: Json, interrupted: Json): void | Promise<void>;
  /** Checks an output that a person gave in place of the tool. */
  parseOutput(value: unknown): Promise<Json>;
}

const optionNames: OptionNames<ToolOptions> = {
  name: true,
  description: true,
  input: true,
  output: true,
  state: true,
  needsApproval: ['boolean', 'function'],
  undo: ['function', 'object'],
  effect: true,
  metadata: 'object',
};

const noInput = { type: 'object', properties: {}, additionalProperties: false };

/**
 * Creates a tool from a function. It is not registered by name: pass it to the agents and calls that use it.
 *
 * @example
 * const weather = tool(
 *   { name: 'weather', description: 'The weather of a city.', input: z.object({ city: z.string() }) },
 *   async ({ city }) => await forecast(city),
 * );
 */
export function tool<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  State extends Schema | undefined = undefined,
  Returned extends InferSchemaInput<Output, unknown> = InferSchemaInput<Output, unknown>,
>(
  options: ToolOptions<Input, Output, State>,
  fn: (input: InferSchema<Input, JsonObject>, context: ToolContext) => Returned | Promise<Returned>,
): Tool<
  InferSchemaInput<Input, JsonObject>,
  InferSchema<Output, DatesAsText<Returned>>,
  InferSchema<State, unknown>
> {
  type Ours = Tool<
    InferSchemaInput<Input, JsonObject>,
    InferSchema<Output, DatesAsText<Returned>>,
    InferSchema<State, unknown>
  >;
  const { name, description, metadata, input: inputSchema, output: outputSchema } = options;
  const { needsApproval = false, effect } = options;
  checkOptions(options, optionNames, `tool "${name}"`, {
    inputSchema: 'input',
    outputSchema: 'output',
    parameters: 'input',
    requireApproval: 'needsApproval',
  });
  checkDeclaration(name, description, fn);
  const undo = checkUndo(options as ToolOptions);
  const parseOutput = async (value: unknown): Promise<Json> => {
    const what = `The output of tool "${name}"`;
    const output = outputSchema ? await parse(outputSchema, value, what) : value;
    // A tool that returns nothing has still answered.
    return toJsonResult(output ?? null, what);
  };
  const parseInput = async (value: unknown): Promise<unknown> =>
    inputSchema ? await parse(inputSchema, value, `The input of tool "${name}"`) : (value ?? {});
  const run: Ours['run'] = async (value, context) => {
    const input = await parseInput(value).catch((error: unknown) => {
      throw markBadCall(error);
    });
    // Parsed by the schema that the function's parameter type is read off.
    const typed = input as InferSchema<Input, JsonObject>;
    const isHeld =
      typeof needsApproval === 'function' ? await needsApproval(typed, context) : needsApproval;
    if (isHeld) requireApproval({ name, input: value as Json }, context);
    const hook = effect === undefined ? effectHookOf(context) : undefined;
    // Recorded before the effect, so that it is known if this process dies.
    await hook?.begin(name, { input: (value ?? null) as Json, undoable: undo !== undefined });
    const returned = await fn(typed, context);
    const output = await parseOutput(returned);
    await hook?.end(output);
    return output as Awaited<ReturnType<Ours['run']>>;
  };
  return {
    name,
    description,
    ...defined({ metadata, effect, undo, state: options.state && stateOf(name, options.state) }),
    definition: {
      name,
      description,
      inputSchema: inputSchema ? toJsonSchema(inputSchema, 'input') : noInput,
      ...(outputSchema && { outputSchema: toJsonSchema(outputSchema, 'output') }),
    },
    run,
    parseInput,
    parseOutput,
  };
}

/**
 * Creates a tool that the model's provider runs itself, such as its web search.
 *
 * @example
 * const search = providerTool({ name: 'search', id: 'openai.web_search' });
 */
export function providerTool({
  name,
  id,
  args = {},
}: {
  /** The name in this conversation. */
  readonly name: string;
  /** `provider.tool`, such as `openai.web_search`. */
  readonly id: string;
  readonly args?: JsonObject;
}): Tool {
  const refuse = (): never => {
    throw new WaymarkError('UNIMPLEMENTED', `Tool "${name}" is run by the provider of the model.`);
  };
  return {
    name,
    description: '',
    definition: { name, inputSchema: noInput, provider: { id, args } },
    run: async () => refuse(),
    parseInput: async () => refuse(),
    parseOutput: async () => refuse(),
  };
}

function stateOf(name: string, schema: Schema): ToolState<unknown> {
  return {
    schema,
    check: (custom) => void parseSync(schema, custom, `The state that tool "${name}" works on`),
  };
}

function checkDeclaration(name: string, description: unknown, fn: unknown): void {
  if (!/^[\w-]{1,64}$/.test(name)) {
    throw invalid(
      `"${name}" cannot be the name of a tool: providers take letters, digits, "_" and "-", at most 64.`,
    );
  }
  if (typeof description !== 'string') {
    throw invalid(
      `Tool "${name}" needs a \`description\`, a text that tells the model when to use it.`,
    );
  }
  if (typeof fn !== 'function') {
    throw invalid(
      `Tool "${name}" has no function. Pass it as the second argument: defineTool({ name, description, input }, async (input) => …).`,
    );
  }
}

/** How an interrupt is declared: a tool without a function, whose answer comes from outside. */
export interface InterruptOptions<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
> extends Omit<ToolOptions<Input, Output>, 'state' | 'undo' | 'effect'>,
    Omit<InterruptDeadline, 'expiresAt'> {
  /**
   * Creates what the user sees from the model's input.
   * @default `true`: the user sees the request
   */
  readonly request?: (input: InferSchema<Input, JsonObject>) => Json | Promise<Json>;
}

/**
 * Creates a tool that always waits for the user's answer. The output schema checks the answer.
 *
 * @example
 * const confirm = interrupt({
 *   name: 'confirm',
 *   description: 'Asks the user to confirm.',
 *   output: z.object({ ok: z.boolean() }),
 * });
 */
export function interrupt<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
>(
  options: InterruptOptions<Input, Output>,
): Tool<InferSchemaInput<Input, JsonObject>, InferSchema<Output, DatesAsText<Json>>> {
  const { request, metadata, expiresIn, onExpiry, ...toolOptions } = options;
  const deadline = defined({ expiresIn, onExpiry });
  return tool(
    // A form for the answer must know that the tool has no output schema.
    { ...toolOptions, effect: 'none', metadata: { ...metadata, interrupt: true } },
    async (input, context): Promise<never> =>
      context.interrupt(request ? await request(input) : undefined, deadline),
  );
}

const badCalls = new WeakSet<object>();

/** Marks the error of a tool call that the model got wrong: no such tool, or an input that does not fit. */
export function markBadCall<T>(error: T): T {
  if (isWaymarkError(error)) badCalls.add(error);
  return error;
}

/** Whether the model, and not the tool, is to blame. */
export function isBadCall(error: unknown): boolean {
  return typeof error === 'object' && error !== null && badCalls.has(error);
}
