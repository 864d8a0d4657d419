import { raceSignal, throwIfAborted } from '../../core/async/signal.ts';
import type {
  Model,
  ModelCall,
  ModelConfig,
  ModelRequest,
  ModelResponse,
  ToolChoice,
} from '../model.ts';
import { checkApiKey } from './api-key.ts';
import { closedSchema } from './closed-schema.ts';
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
  let model = adapted.get(languageModel);
  if (!model) {
    model = {
      name: `${languageModel.provider}/${languageModel.modelId}`,
      provider: languageModel.provider,
      modelId: languageModel.modelId,
      constrainsOutput: true,
      run: (request, call) => run(languageModel, request, call),
      check: () => checkApiKey(languageModel),
    };
    adapted.set(languageModel, model);
  }
  return model;
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
  const options = toCallOptions(request, languageModel.specificationVersion, signal);
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
  version: SpecificationVersion,
  abortSignal: AbortSignal,
): CallOptions {
  const isJson = output?.contentType === 'application/json';
  return {
    ...settingsOf(config),
    prompt: toPrompt(messages, version),
    abortSignal,
    ...(tools.length > 0 && { tools: tools.map((tool) => toCallTool(tool, version)) }),
    ...(tools.length > 0 && toolChoice && { toolChoice: toCallToolChoice(toolChoice) }),
    ...(isJson && {
      responseFormat: {
        type: 'json',
        ...(output.schema && { schema: closedSchema(output.schema) }),
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
  const known: Record<string, unknown> = {};
  for (const name of settings) if (config[name] !== undefined) known[name] = config[name];
  return known;
}

function toCallTool(
  { name, description, inputSchema, provider }: ModelRequest['tools'][number],
  version: SpecificationVersion,
): CallTool {
  if (provider) {
    const type = version === 'v2' ? 'provider-defined' : 'provider';
    return { type, id: provider.id, name, args: provider.args };
  }
  return { type: 'function', name, inputSchema, ...(description !== undefined && { description }) };
}

function toCallToolChoice(choice: ToolChoice): NonNullable<CallOptions['toolChoice']> {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool };
}
