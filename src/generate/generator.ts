import type { Action } from '../core/action.ts';
import { rethrow } from '../core/async/promises.ts';
import { invalid, type WaymarkError } from '../core/error.ts';
import type { DatesAsText } from '../core/json/dates.ts';
import type { JsonObject } from '../core/json/json.ts';
import { checkOptions } from '../core/options.ts';
import {
  type InferSchema,
  type InferSchemaInput,
  type Schema,
  toJsonSchema,
} from '../core/schema/schema.ts';
import type { Clock } from '../core/time.ts';
import { type Price, withPrice } from './answer/price.ts';
import { type GenerateResponse, type OutputOf, Progress } from './answer/response.ts';
import type { ToolCallInfo } from './answer/run-tool-call.ts';
import {
  createDefinitions,
  type Definitions,
  modelAction,
  promptAction,
  toolAction,
} from './definitions.ts';
import { type GenerateCall, type GenerateEnv, runGenerate, StartedCall } from './generate.ts';
import { type GenerateOptions, generateOptionNames } from './generate-options.ts';
import { type GenerateStream, streamGenerate } from './generate-stream.ts';
import { generateScope } from './hooks.ts';
import { fromLanguageModel, isLanguageModel } from './language-model/language-model.ts';
import {
  type ProviderModel,
  providerAdvice,
  providerModel,
} from './language-model/provider-models.ts';
import type { LanguageModel } from './language-model/types.ts';
import { type Model, type ModelOptions, type ModelRef, type ModelRunner, model } from './model.ts';
import { createDotpromptEngine, loadPromptFiles } from './prompt/dotprompt.ts';
import { createPrompt, type Prompt, type PromptEnv, type PromptOptions } from './prompt/prompt.ts';
import { resource } from './resource.ts';
import {
  type InterruptOptions,
  interrupt,
  type Tool,
  type ToolOptions,
  tool,
} from './tool/tool.ts';
import type { ToolContext } from './tool/tool-context.ts';
import {
  closeSources,
  type ResolvedTools,
  resolveTools,
  type ToolRef,
  type ToolSource,
  type ToolsScope,
} from './tool/tool-source.ts';

export interface GeneratorOptions<Extras extends object = object> {
  /** Where everything that is defined is registered as an action. */
  readonly registry: { register(key: string, action: Action): void };
  readonly clock: Clock;
  readonly newId: () => string;
  /** The model of calls that name none. */
  readonly model?: ModelRef | undefined;
  readonly price?: Price | undefined;
  /** The additions to the context of each tool call, such as the session; its return type is the type of the tools' context. */
  readonly toolExtras?: ((call: ToolCallInfo) => Extras) | undefined;
  /** Refuses a tool that a call cannot use, before the model is called. */
  readonly checkTool?: ((tool: Tool) => void) | undefined;
  /** The default of `@state` in templates. */
  readonly templateState?: (() => unknown) | undefined;
}

/** Defines models, tools and prompts, and generates with them: the part of a generator that an app offers. */
export interface Definer<Extras extends object = object> {
  /** Defines a model by a function, or gives an AI SDK language model a name. */
  defineModel(options: ModelOptions, run: ModelRunner | LanguageModel): Model;
  /** Defines a tool. */
  defineTool<
    Input extends Schema | undefined = undefined,
    Output extends Schema | undefined = undefined,
    State extends Schema | undefined = undefined,
    Returned extends InferSchemaInput<Output, unknown> = InferSchemaInput<Output, unknown>,
  >(
    options: ToolOptions<Input, Output, State>,
    fn: (
      input: InferSchema<Input, JsonObject>,
      context: ToolContext & Extras,
    ) => Returned | Promise<Returned>,
  ): Tool<
    InferSchemaInput<Input, JsonObject>,
    InferSchema<Output, DatesAsText<Returned>>,
    InferSchema<State, unknown>
  >;
  /** Defines a tool whose answer always comes from outside. */
  defineInterrupt<
    Input extends Schema | undefined = undefined,
    Output extends Schema | undefined = undefined,
  >(options: InterruptOptions<Input, Output>): ReturnType<typeof interrupt<Input, Output>>;
  /** Defines content that messages refer to by its URI. */
  readonly defineResource: typeof resource;
  /** Gives a schema a name, for `.prompt` files. */
  defineSchema<S extends Schema>(name: string, schema: S): S;
  /** Makes a text usable in templates as `{{> name}}`. */
  definePartial(name: string, source: string): void;
  /** Defines a prompt. */
  definePrompt<
    Input extends Schema | undefined = undefined,
    Output extends Schema | undefined = undefined,
    State = unknown,
  >(
    options: PromptOptions<Input, Output, State>,
  ): Prompt<InferSchemaInput<Input, JsonObject | undefined>, Output, State>;
  /** Defines the prompts in the `.prompt` files of a directory and its folders; those that begin with `_` are partials. */
  loadPrompts(directory: string): Promise<readonly Prompt[]>;
  /** The tool sources that were used, such as MCP servers. */
  toolSources(): readonly ToolSource[];
  /** Lets a model answer, with tools. */
  generate<Output extends Schema | undefined = undefined>(
    options: GenerateOptions<Output> | string,
  ): Promise<GenerateResponse<OutputOf<Output>>>;
  /** Like `generate`, with the answer as it comes. */
  generateStream<Output extends Schema | undefined = undefined>(
    options: GenerateOptions<Output> | string,
  ): GenerateStream<OutputOf<Output>>;
}

/** A generator of an app, with what only agents use of it. */
export interface Generator<Extras extends object = object> extends Definer<Extras> {
  /** The part that an app offers. */
  readonly definer: Definer<Extras>;
  /** As `definePrompt`, for a prompt that is not registered. */
  inlinePrompt(options: PromptOptions): Prompt;
  /** The prompt under a name; an unknown one is NOT_FOUND and says what exists. */
  prompt(name: string): Prompt;
  /** The tool that is meant; an unknown name is NOT_FOUND and says what exists. */
  resolveTool: GenerateEnv['resolveTool'];
  /** The tools that are meant, those of sources included; an unknown name is NOT_FOUND and says what exists. */
  resolveTools(
    refs: readonly ToolRef[] | undefined,
    scope?: Partial<Pick<ToolsScope, 'context' | 'report'>>,
  ): ResolvedTools | Promise<ResolvedTools>;
  /** Takes note of the models that a definition names. Only those can be loaded from the packages of providers. */
  noteModels(definition: Pick<GenerateOptions, 'model' | 'use'>): void;
  /** Loads the packages of the provider models that definitions name, such as `openai/gpt-5`. */
  loadModels(): Promise<void>;
  /** Closes the tool sources that were used. */
  closeSources(): Promise<void>;
  /** The model that is meant, the default one if none is named; an unknown name is NOT_FOUND and says what exists. */
  resolveModel: GenerateEnv['resolveModel'];
  /** Like `generateStream`, for callers that use `onChunk`: no chunks are buffered. */
  startGenerate<Output extends Schema | undefined = undefined>(
    options: GenerateOptions<Output>,
  ): GenerateCall<OutputOf<Output>>;
}

export function createGenerator<Extras extends object = object>(
  options: GeneratorOptions<Extras>,
): Generator<Extras> {
  const { registry, newId, templateState } = options;
  const definitions = createDefinitions();
  const sources = new Set<ToolSource>();
  const named = new Map<string, ProviderModel>();
  const env = createEnv(options, definitions, { sources, named });
  const noteModels: Generator['noteModels'] = ({ model: own, use = [] }) => {
    for (const ref of [own, ...use.flatMap(({ models = [] }) => models)]) {
      const found = typeof ref === 'string' && !named.has(ref) ? providerModel(ref) : undefined;
      if (found !== undefined) named.set(found.name, found);
    }
  };
  const newPrompt: typeof createPrompt = (about, promptContext) => {
    const created = createPrompt(about, promptContext);
    noteModels(about);
    return created;
  };
  if (options.model !== undefined) {
    noteModels({ model: options.model });
    if (typeof options.model === 'object') env.resolveModel(options.model);
  }
  const findSchema = (name: string): Schema => definitions.schemas.lookup(`/schema/${name}`);
  const engine = createDotpromptEngine((name) => toJsonSchema(findSchema(name)));
  const promptEnv: PromptEnv = {
    engine,
    ambientScope: () => ({ state: templateState?.(), context: generateScope.get()?.context ?? {} }),
    generate: (call) => runGenerate(env, call, new Progress()).catch(rethrow),
    stream: (call, output) => streamGenerate(env, call, output),
  };

  const addModel = (defined: Model): Model => {
    definitions.models.register(`/model/${defined.name}`, defined);
    registry.register(`/model/${defined.name}`, modelAction(defined));
    return defined;
  };
  const addTool = <T extends Tool<unknown, unknown, never>>(defined: T): T => {
    const { name } = defined;
    const extras = (ref: string): object => env.toolExtras({ name, ref });
    // The agent that uses the tool checks its state.
    const any = defined as unknown as Tool;
    definitions.tools.register(`/tool/${name}`, any);
    registry.register(`/tool/${name}`, toolAction(any, { newId, extras }));
    return defined;
  };
  const addPrompt = <T extends Prompt<unknown, Schema | undefined, never>>(defined: T): T => {
    const any = defined as Prompt;
    definitions.prompts.register(`/prompt/${defined.name}`, any);
    registry.register(`/prompt/${defined.name}`, promptAction(any));
    return defined;
  };

  const definer: Definer<Extras> = {
    toolSources: () => [...sources],
    defineModel: (about, run) =>
      addModel(isLanguageModel(run) ? { ...fromLanguageModel(run), ...about } : model(about, run)),
    defineTool: (about, fn) =>
      // Every context that a tool gets has the extras in it.
      addTool(tool(about, (input, context) => fn(input, context as ToolContext & Extras))),
    defineInterrupt: (about) => addTool(interrupt(about)),
    defineResource(about, read) {
      const defined = resource(about, read);
      definitions.resources.register(`/resource/${about.name}`, defined);
      return defined;
    },
    defineSchema(name, schema) {
      toJsonSchema(schema);
      definitions.schemas.register(`/schema/${name}`, schema);
      return schema;
    },
    definePartial: (name, source) => engine.definePartial(name, source),
    definePrompt: (about) => addPrompt(newPrompt(about, promptEnv)),
    async loadPrompts(directory) {
      const files = await loadPromptFiles(directory, engine, findSchema);
      return files.map((file) => addPrompt(newPrompt(file, promptEnv)) as Prompt);
    },
    generate: <Output extends Schema | undefined>(call: GenerateOptions<Output> | string) =>
      // The output of the call is read by the schema that its type comes from.
      runGenerate(env, toOptions(call), new Progress()).catch(rethrow) as Promise<
        GenerateResponse<OutputOf<Output>>
      >,
    generateStream: (call) => streamGenerate(env, toOptions(call)),
  };
  return {
    ...definer,
    definer,
    resolveTool: env.resolveTool,
    // Never aborted: a source bounds its own waits.
    resolveTools: (refs, { context = {}, report = () => {} } = {}) =>
      resolveTools(refs, {
        context,
        report,
        signal: new AbortController().signal,
        resolveTool: env.resolveTool,
        addSource: env.addSource,
      }),
    closeSources: () => closeSources(sources),
    resolveModel: env.resolveModel,
    noteModels,
    async loadModels() {
      for (const [name, found] of named) {
        if (definitions.models.find(`/model/${name}`) === undefined) await found.load();
      }
    },
    inlinePrompt: (about) => createPrompt(about, promptEnv) as Prompt,
    prompt: (name) => definitions.prompts.lookup(`/prompt/${name}`),
    startGenerate: (call) => new StartedCall((progress) => runGenerate(env, call, progress)),
  };
}

type NamedModels = ReadonlyMap<string, ProviderModel>;

function createEnv(
  { clock, newId, model: defaultModel, price, toolExtras, checkTool }: GeneratorOptions,
  { models, tools, resources }: Definitions,
  { sources, named }: { readonly sources: Set<ToolSource>; readonly named: NamedModels },
): GenerateEnv {
  return {
    clock,
    newId,
    toolExtras: (call) => toolExtras?.(call) ?? {},
    resolveModel(ref = defaultModel) {
      if (ref === undefined) throw noModel();
      if (typeof ref === 'string')
        return withPrice(
          (named.has(ref) ? models.find(`/model/${ref}`) : undefined) ??
            named.get(ref) ??
            models.lookup(`/model/${ref}`, () => providerAdvice(ref)),
          price,
        );
      if (isLanguageModel(ref)) return withPrice(fromLanguageModel(ref), price);
      if (typeof ref.run !== 'function') throw notAModel();
      return withPrice(ref, price);
    },
    resolveTool: (ref) => (typeof ref === 'string' ? tools.lookup(`/tool/${ref}`) : ref),
    checkTool: (used) => checkTool?.(used),
    addSource: (source) => void sources.add(source),
    resolveResource: (ref) =>
      typeof ref === 'string' ? resources.lookup(`/resource/${ref}`) : ref,
  };
}

function toOptions<Output extends Schema | undefined>(
  options: GenerateOptions<Output> | string,
): GenerateOptions<Output> {
  if (typeof options === 'string') return { prompt: options };
  checkOptions(options, generateOptionNames, 'generate()', {
    instructions: 'system',
    input: 'prompt',
    middleware: 'use',
    stopWhen: 'maxTurns',
    maxSteps: 'maxTurns',
    abortSignal: 'signal',
  });
  return options;
}

function noModel(): WaymarkError {
  return invalid(
    'There is no model. Pass `model` to waymark() as the default of all calls, or to the agent or call that needs it.',
  );
}

function notAModel(): WaymarkError {
  return invalid(
    'This is not a model: pass a name, a model of `defineModel`, or an AI SDK language model of specification v2, v3 or v4.',
  );
}
