import type { ModelRef } from 'waymark';

/** The selected model, and a note about it for the user. */
export interface FoundModel {
  readonly model: ModelRef | undefined;
  readonly note: string;
}

interface Provider {
  readonly key: string;
  readonly module: string;
  readonly factory: string;
  readonly modelId: string;
}

const providers: readonly Provider[] = [
  { key: 'OPENAI_API_KEY', module: '@ai-sdk/openai', factory: 'openai', modelId: 'gpt-5' },
  {
    key: 'ANTHROPIC_API_KEY',
    module: '@ai-sdk/anthropic',
    factory: 'anthropic',
    modelId: 'claude-sonnet-4-5',
  },
  {
    key: 'GOOGLE_GENERATIVE_AI_API_KEY',
    module: '@ai-sdk/google',
    factory: 'google',
    modelId: 'gemini-2.5-flash',
  },
];

/** The usual addresses of local OpenAI-compatible servers. */
const localServers = [
  { name: 'Ollama', url: 'http://127.0.0.1:11434/v1' },
  { name: 'LM Studio', url: 'http://127.0.0.1:1234/v1' },
  { name: 'llama.cpp', url: 'http://127.0.0.1:8080/v1' },
] as const;

/** Uses a provider whose key is in the environment, or else a local server. Without either, the examples are scripted. */
export async function chooseModel(
  env: Readonly<Record<string, string | undefined>> = process.env,
  servers: readonly { readonly name: string; readonly url: string }[] = localServers,
  { timeout = 300 }: { readonly timeout?: number } = {},
): Promise<FoundModel> {
  const wanted = env.WAYMARK_MODEL;
  for (const { key, module, factory, modelId } of providers) {
    if (!env[key]) continue;
    const loaded = await import(module).catch(() => undefined);
    if (loaded === undefined) {
      return {
        model: undefined,
        note: `${key} is set: \`npm install ${module}\` to use it. Until then the agents play a script.`,
      };
    }
    const id = wanted ?? modelId;
    return { model: loaded[factory](id), note: `${factory} ${id}, because ${key} is set` };
  }
  for (const { name, url } of servers) {
    const first = await firstModelOf(url, timeout);
    if (first === undefined) continue;
    const id = wanted ?? first;
    const loaded = await import('@ai-sdk/openai').catch(() => undefined);
    if (loaded === undefined) break;
    const provider = loaded.createOpenAI({ baseURL: url, apiKey: 'none' });
    return { model: provider.chat(id), note: `${id} on ${name}, found at ${url}` };
  }
  return { model: undefined, note: 'no key and no local server found: the agents play a script' };
}

async function firstModelOf(url: string, timeout: number): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/models`, { signal: AbortSignal.timeout(timeout) });
    const { data } = (await response.json()) as { data?: readonly { readonly id: string }[] };
    return data?.[0]?.id;
  } catch {
    return undefined;
  }
}
