import { WaymarkError } from '../../core/error.ts';
import type { LanguageModel } from './types.ts';

const checked = new WeakSet<LanguageModel>();

/**
 * Throws if a provider has no API key. Packages of the AI SDK look for it when they make the headers of a request, which
 * needs no request; of a package that does it otherwise nothing is known before the call.
 */
export function checkApiKey(languageModel: LanguageModel): void {
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

/** What the classes of the providers hold besides what their interface says. */
type Configured = LanguageModel & { readonly config?: { readonly headers?: unknown } };

function isMissingKey(error: unknown): error is Error {
  return error instanceof Error && /^AI_Load(APIKey|Setting)Error$/.test(error.name);
}
