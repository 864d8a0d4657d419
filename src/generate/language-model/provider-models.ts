import { failedPrecondition } from '../../core/error.ts';
import { requireOptional } from '../../core/platform.ts';
import type { Model } from '../model.ts';
import { fromLanguageModel, isLanguageModel } from './language-model.ts';

/** A provider's package, and the names by which other libraries refer to the provider. */
interface Provider {
  readonly package: string;
  /** The export of the package that creates a model. */
  readonly create: string;
  /** The first part of names such as `openai/gpt-5` and `googleai/gemini-2.5-flash`. */
  readonly prefixes: readonly string[];
  /** Model ids without such a part. */
  readonly ids?: RegExp;
}

const providers: readonly Provider[] = [
  {
    package: '@ai-sdk/openai',
    create: 'openai',
    prefixes: ['openai'],
    ids: /^(gpt-|chatgpt-|o[1-9](-|$))/,
  },
  { package: '@ai-sdk/anthropic', create: 'anthropic', prefixes: ['anthropic'], ids: /^claude-/ },
  {
    package: '@ai-sdk/google',
    create: 'google',
    prefixes: ['google', 'googleai', 'gemini'],
    ids: /^gemini-/,
  },
  {
    package: '@ai-sdk/google-vertex',
    create: 'vertex',
    prefixes: ['vertex', 'vertexai', 'google-vertex'],
  },
  { package: '@ai-sdk/mistral', create: 'mistral', prefixes: ['mistral'], ids: /^mistral-/ },
  { package: '@ai-sdk/xai', create: 'xai', prefixes: ['xai'], ids: /^grok-/ },
  { package: '@ai-sdk/deepseek', create: 'deepseek', prefixes: ['deepseek'], ids: /^deepseek-/ },
  { package: '@ai-sdk/groq', create: 'groq', prefixes: ['groq'] },
  { package: '@ai-sdk/cohere', create: 'cohere', prefixes: ['cohere'], ids: /^command-/ },
];

/** A model whose package is loaded by `ready()`, or by its first call. */
export interface ProviderModel extends Model {
  /** Loads the package; FAILED_PRECONDITION if it is not installed. */
  load(): Promise<Model>;
}

/** The model of a name such as `openai/gpt-5`; `undefined` if the name does not begin with a provider. */
export function providerModel(name: string): ProviderModel | undefined {
  const [, prefix = '', modelId = ''] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
  const provider = providers.find(({ prefixes }) => prefixes.includes(prefix));
  if (provider === undefined) return undefined;
  let loading: Promise<Model> | undefined;
  let loaded: Model | undefined;
  const load = async (): Promise<Model> => {
    // A failure is not kept: the package may be installed while the app runs.
    loading ??= createModel(provider, name, modelId).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    loaded = await loading;
    return loaded;
  };
  return {
    name,
    provider: provider.create,
    modelId,
    constrainsOutput: true,
    load,
    run: async (request, call) => (await load()).run(request, call),
    check: () => loaded?.check?.(),
  };
}

async function createModel(provider: Provider, name: string, modelId: string): Promise<Model> {
  const create = loadPackage(provider.package, name)[provider.create];
  const languageModel: unknown = typeof create === 'function' ? create(modelId) : undefined;
  if (isLanguageModel(languageModel)) return fromLanguageModel(languageModel);
  throw failedPrecondition(
    `The installed version of ${provider.package} cannot create the model "${name}". Update the package.`,
  );
}

function loadPackage(specifier: string, name: string): Record<string, unknown> {
  // Not by `import()`: bundlers look for the package, and the Workers runtime accepts no module whose name is computed.
  const loaded = requireOptional(specifier);
  if (typeof loaded === 'object' && loaded !== null) return { ...loaded };
  throw failedPrecondition(
    `Model "${name}" needs the package ${specifier}, which cannot be loaded. Install it: npm install ${specifier}. In a bundle, import the package and pass the model instead of its name.`,
  );
}

/** How to name a model that other libraries name differently; `undefined` if the name does not look like a provider's model. */
export function providerAdvice(name: string): string | undefined {
  const [, prefix, rest] = /^([^/:]+)[/:](.+)$/.exec(name) ?? [];
  const known = providers.find(({ prefixes, ids }) =>
    prefix === undefined ? ids?.test(name) : prefixes.includes(prefix.toLowerCase()),
  );
  if (known !== undefined) {
    const { create, package: from, prefixes } = known;
    const id = rest ?? name;
    return `To use a provider's model, name it in the definition of the app, an agent or a prompt: '${prefixes[0]}/${id}'. Or pass the model: ${create}('${id}') from the package ${from}.`;
  }
  if (prefix === undefined) return undefined;
  return "To use a provider's model, pass the model instead of a name, such as openai('gpt-5') from the package @ai-sdk/openai.";
}
