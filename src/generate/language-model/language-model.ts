import { raceSignal, throwIfAborted } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { defined } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type {
  Model,
  ModelCall,
  ModelConfig,
  ModelRequest,
  ModelResponse,
  ToolChoice,
} from '../model.ts';
import { withCacheMarks } from './cache-marks.ts';
import { fromProviderError } from './errors.ts';
import { toPrompt } from './prompt.ts';
import { readStream } from './stream.ts';
import type { CallOptions, CallTool, LanguageModel, SpecificationVersion } from './types.ts';

const versions: ReadonlySet<unknown> = new Set(['v2', 'v3', 'v4'] satisfies SpecificationVersion[]);

/** Whether a value is an AI SDK language model that can be driven here. */
export function isLanguageModel(value: unknown): value is LanguageModel {
  return (
    typeof value === 'object' &&
    value !== null &&
    'doStream' in value &&
    typeof value.doStream === 'function' &&
    'specificationVersion' in value &&
    versions.has(value.specificationVersion)
  );
}

const adapted = new WeakMap<LanguageModel, Model>();

/** An AI SDK language model as a model of ours, driven through its `doStream`. */
export function fromLanguageModel(languageModel: LanguageModel): Model {
  const { provider, modelId } = languageModel;
  return getOrMake(adapted, languageModel, () => ({
    name: `${provider}/${modelId}`,
    provider,
    modelId,
    constrainsOutput: true,
    run: (request, call) => run(languageModel, request, call),
    check: () => checkApiKey(languageModel),
  }));
}

async function run(
  languageModel: LanguageModel,
  request: ModelRequest,
  call: ModelCall,
): Promise<ModelResponse> {
  const { signal } = call;
  throwIfAborted(signal);
  const { provider, modelId } = languageModel;
  const name = `${provider}/${modelId}`;
  const options = toCallOptions(request, languageModel, signal);
  let stream: ReadableStream<unknown>;
  try {
    // The options are built to the model's own version of the specification.
    ({ stream } = await raceSignal(languageModel.doStream(options as never), signal));
  } catch (error) {
    throwIfAborted(signal);
    throw fromProviderError(error, name);
  }
  return readStream(stream, name, call);
}

function toCallOptions(
  { messages, tools, toolChoice, config, output }: ModelRequest,
  model: LanguageModel,
  abortSignal: AbortSignal,
): CallOptions {
  const { specificationVersion: version } = model;
  const isJson = output?.contentType === 'application/json';
  return {
    ...settingsOf(config),
    prompt: withCacheMarks(toPrompt(messages, version), model, config?.cache),
    abortSignal,
    ...(tools.length > 0 && { tools: tools.map((tool) => toCallTool(tool, version)) }),
    ...(tools.length > 0 && toolChoice && { toolChoice: toCallToolChoice(toolChoice) }),
    ...(isJson && {
      responseFormat: {
        type: 'json',
        ...defined({ schema: output.schema && closedSchema(output.schema) }),
      },
    }),
  };
}

const settings = [
  'temperature',
  'maxOutputTokens',
  'topP',
  'topK',
  'presencePenalty',
  'frequencyPenalty',
  'stopSequences',
  'seed',
  'reasoning',
  'headers',
  'providerOptions',
] as const satisfies readonly (keyof ModelConfig)[];

// Only what the specification knows: a stray setting must not be taken for an option of the call.
function settingsOf(config: ModelConfig | undefined): Partial<CallOptions> {
  if (!config) return {};
  return defined(Object.fromEntries(settings.map((name) => [name, config[name]])));
}

function toCallTool(
  { name, description, inputSchema, provider }: ModelRequest['tools'][number],
  version: SpecificationVersion,
): CallTool {
  if (provider) {
    const type = version === 'v2' ? 'provider-defined' : 'provider';
    return { type, id: provider.id, name, args: provider.args };
  }
  return { type: 'function', name, inputSchema, ...defined({ description }) };
}

function toCallToolChoice(choice: ToolChoice): NonNullable<CallOptions['toolChoice']> {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool };
}

const checked = new WeakSet<LanguageModel>();

/**
 * Throws if a provider has no API key. Packages of the AI SDK look for it when they make the headers of a request, which
 * needs no request; of a package that does it otherwise nothing is known before the call.
 */
function checkApiKey(languageModel: LanguageModel): void {
  if (checked.has(languageModel)) return;
  const { config } = languageModel as Configured;
  if (typeof config?.headers !== 'function') return;
  try {
    const made = config.headers();
    // Whatever else is wrong, the call says.
    if (made instanceof Promise) made.catch(() => {});
    checked.add(languageModel);
  } catch (error) {
    if (!isMissingKey(error)) return;
    throw new WaymarkError('UNAUTHENTICATED', error.message, { cause: error });
  }
}

/** The internal fields of providers' classes. */
type Configured = LanguageModel & { readonly config?: { readonly headers?: unknown } };

function isMissingKey(error: unknown): error is Error {
  return error instanceof Error && /^AI_Load(APIKey|Setting)Error$/.test(error.name);
}

const closed = new WeakMap<JsonSchema, JsonSchema>();

/** A JSON Schema whose objects take no properties beyond those they name: providers that keep to a schema insist on it. */
function closedSchema(schema: JsonSchema): JsonSchema {
  return getOrMake(closed, schema, () => close(schema));
}

function close(schema: JsonSchema): JsonSchema {
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) result[keyword] = closeIn(keyword, value);
  if (isObject(result.properties) && result.additionalProperties === undefined) {
    result.additionalProperties = false;
  }
  return result;
}

function closeIn(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'items':
    case 'additionalProperties':
    case 'not':
      return closeValue(value);
    case 'anyOf':
    case 'oneOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map(closeValue) : value;
    case 'properties':
    case '$defs':
    case 'definitions':
      return isObject(value)
        ? Object.fromEntries(
            Object.entries(value).map(([name, inner]) => [name, closeValue(inner)]),
          )
        : value;
    // The schemas of an allOf hold together: closing one would shut out what another names.
    default:
      return value;
  }
}

function closeValue(value: unknown): unknown {
  return isObject(value) ? close(value) : value;
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
