import type { ActionContext } from '../../core/action.ts';
import { defined, type JsonObject } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import {
  type InferSchema,
  type InferSchemaInput,
  type JsonSchema,
  parse,
  type Schema,
  toJsonSchema,
} from '../../core/schema/schema.ts';
import type { Message, Part } from '../../protocol/message.ts';
import type { GenerateResponse, OutputOf } from '../answer/response.ts';
import {
  type GenerateOptions,
  type GenerateSettings,
  generateSettingNames,
} from '../generate-options.ts';
import type { GenerateStream } from '../generate-stream.ts';
import { resolveOutput } from '../output/output.ts';
import {
  type MessagesTemplate,
  renderContent,
  renderMessages,
  splitAtHistory,
  type Template,
  type TemplateEngine,
  type TemplateScope,
  userMessage,
} from '../template.ts';
import { checkToolRefs } from '../tool/tool-source.ts';

/** How a prompt is declared: templates, and settings for the calls made with it. */
export interface PromptOptions<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  State = never,
> extends GenerateSettings<Output, State> {
  /** The name, unique in the app. */
  readonly name: string;
  /** The purpose of the prompt. */
  readonly description?: string;
  /** The schema of the input. */
  readonly input?: Input;
  /** Default values of the input. */
  readonly defaultInput?: JsonObject;
  /** The system message. */
  readonly system?: Template<PromptInput<Input>>;
  /** Messages around the conversation. */
  readonly messages?: MessagesTemplate<PromptInput<Input>>;
  /** A user message after the conversation. */
  readonly prompt?: Template<PromptInput<Input>>;
  /** Your own data about the prompt. */
  readonly metadata?: JsonObject;
}

/** The input of a prompt's templates, for its input schema. */
type PromptInput<Input> = InferSchema<Input, JsonObject | undefined>;

/** Generate options whose messages are made for one request and stored nowhere. */
interface RenderedPrompt<Output extends Schema | undefined = Schema | undefined>
  extends GenerateSettings<Output> {
  /** The system prompt. */
  readonly system?: readonly Part[];
  /** Messages before the conversation. */
  readonly before: readonly Message[];
  /** Messages after the conversation. */
  readonly after: readonly Message[];
}

/** Options of rendering a prompt. */
interface RenderOptions {
  /** @default the custom state of the session around the call */
  readonly state?: unknown;
  /** @default the context of the call around it */
  readonly context?: ActionContext;
}

/** The arguments of a prompt's functions: the input is optional where its type allows `undefined`. */
type PromptArguments<Argument, Options> = undefined extends Argument
  ? [input?: Argument, options?: Options]
  : [input: Argument, options?: Options];

/** A prompt that can be rendered, and answered by a model. `State` is what its tools need as the state of an agent. */
export interface Prompt<
  Argument = unknown,
  Output extends Schema | undefined = Schema | undefined,
  State = unknown,
> extends Pick<GenerateSettings<Output, State>, 'model' | 'tools' | 'use'> {
  /** The name. */
  readonly name: string;
  /** The purpose of the prompt. */
  readonly description?: string;
  /** Your own data about the prompt. */
  readonly metadata?: JsonObject;
  /** JSON Schema of the input. */
  readonly inputSchema?: JsonSchema;
  /** Default values of the input. */
  readonly defaultInput?: JsonObject;
  /** Checks an input; INVALID_ARGUMENT says what is wrong. */
  checkInput(input: Argument): Promise<void>;
  /** Checks the input and makes the messages of one request. */
  render(...args: PromptArguments<Argument, RenderOptions>): Promise<RenderedPrompt<Output>>;
  /** Renders the prompt and lets a model answer; options override the prompt's own, `messages` are the conversation. */
  generate(
    ...args: PromptArguments<Argument, PromptCallOptions>
  ): Promise<GenerateResponse<OutputOf<Output>>>;
  /** Like `generate`, with the answer as it comes. */
  stream(...args: PromptArguments<Argument, PromptCallOptions>): GenerateStream<OutputOf<Output>>;
}

/** Options of a call with a prompt: everything but what the prompt renders. */
type PromptCallOptions = Omit<GenerateOptions, 'system' | 'before' | 'after' | 'output'> & {
  readonly state?: unknown;
};

export interface PromptEnv {
  readonly engine: TemplateEngine;
  /** The defaults of `@state` and `context`. */
  ambientScope(): Pick<TemplateScope, 'state' | 'context'>;
  generate(options: GenerateOptions): Promise<GenerateResponse>;
  stream(options: Promise<GenerateOptions>, output: GenerateSettings['output']): GenerateStream;
}

const optionNames: OptionNames<PromptOptions> = {
  name: true,
  description: true,
  input: true,
  defaultInput: true,
  system: true,
  messages: true,
  prompt: true,
  metadata: true,
  ...generateSettingNames,
};

/** A prompt out of templates and settings; a schema that cannot be described as JSON Schema is refused here. */
export function createPrompt<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  State = unknown,
>(
  options: PromptOptions<Input, Output, State>,
  env: PromptEnv,
): Prompt<InferSchemaInput<Input, JsonObject | undefined>, Output, State> {
  type Argument = InferSchemaInput<Input, JsonObject | undefined>;
  checkOptions(options, optionNames, `prompt "${options.name}"`);
  if (options.tools !== undefined) checkToolRefs(options.tools, `prompt "${options.name}"`);
  const { name, description, metadata, input: schema, defaultInput, ...rest } = options;
  const { system, messages, prompt: asked, ...settings } = rest;
  resolveOutput(settings.output);
  const parseInput = async (input: unknown): Promise<PromptInput<Input>> => {
    const full = defaultInput && isPlain(input) ? { ...defaultInput, ...input } : input;
    const what = `The input of prompt "${name}"`;
    // Parsed by the schema that the templates' input type is read off.
    return (schema ? await parse(schema, full ?? {}, what) : full) as PromptInput<Input>;
  };
  const isFixed = system === undefined && messages === undefined && asked === undefined;
  const render = async (
    input?: unknown,
    scope?: RenderOptions,
  ): Promise<RenderedPrompt<Output>> => {
    const parsed = schema || defaultInput ? await parseInput(input) : (input as PromptInput<Input>);
    if (isFixed) return { ...settings, before: [], after: [] };
    const { context } = scope ?? {};
    const here = scope !== undefined && 'state' in scope && context !== undefined;
    const around = here ? { state: scope.state, context } : { ...env.ambientScope(), ...scope };
    const full = { ...around, input: parsed };
    const rendered = await renderTemplates({ system, messages, asked }, full, env.engine);
    return { ...settings, ...rendered };
  };
  const { model, tools, use } = settings;
  const callOptions = async (input?: unknown, own?: PromptCallOptions): Promise<GenerateOptions> =>
    withOverrides(await render(input, defined({ state: own?.state, context: own?.context })), own);
  const prompt = {
    name,
    ...defined({ description, metadata, defaultInput, model, tools, use }),
    ...(schema && { inputSchema: toJsonSchema(schema, 'input') }),
    checkInput: async (input: unknown) => {
      await parseInput(input);
    },
    render,
    generate: async (input?: Argument, own?: PromptCallOptions) =>
      env.generate(await callOptions(input, own)),
    stream: (input?: Argument, own?: PromptCallOptions) =>
      env.stream(callOptions(input, own), settings.output),
  };
  // Whether the input may be left out depends on its type; and the output is read by the schema its type comes from.
  return prompt as Prompt<Argument, Output, State>;
}

async function renderTemplates<Input>(
  templates: {
    readonly system: Template<Input> | undefined;
    readonly messages: MessagesTemplate<Input> | undefined;
    readonly asked: Template<Input> | undefined;
  },
  scope: TemplateScope<Input>,
  engine: TemplateEngine,
): Promise<Pick<RenderedPrompt, 'system' | 'before' | 'after'>> {
  const { system, messages, asked } = templates;
  const [told, around, last] = await Promise.all([
    system === undefined ? undefined : renderContent(system, scope, engine),
    messages === undefined ? [] : renderMessages(messages, scope, engine),
    asked === undefined ? undefined : renderContent(asked, scope, engine),
  ]);
  const { before, after } = splitAtHistory(around);
  return {
    ...defined({ system: told }),
    before,
    after: last ? [...after, userMessage(last)] : after,
  };
}

function withOverrides(
  rendered: RenderedPrompt,
  { state: _, ...own }: PromptCallOptions = {},
): GenerateOptions {
  const config = rendered.config && own.config && { ...rendered.config, ...own.config };
  return { ...rendered, ...own, ...defined({ config }) };
}

function isPlain(input: unknown): input is object | undefined {
  return input === undefined || (typeof input === 'object' && input !== null);
}
