import { isWaymarkError, messageOf, type Status, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';

/** The error of a provider as ours: the right status, and in `details` whether trying again may help. */
export function fromProviderError(thrown: unknown, model: string): WaymarkError {
  if (isWaymarkError(thrown)) return thrown;
  // A provider's own retries hide what happened in their last error.
  const error = property(thrown, 'lastError') ?? thrown;
  const httpStatus = numberOf(error, 'statusCode') ?? numberOf(error, 'status');
  const status = statusOf(error, httpStatus);
  const told = isNetworkError(error) ? true : property(error, 'isRetryable');
  const retryAfterMs = retryAfter(property(error, 'responseHeaders'));
  return new WaymarkError(status, `Model "${model}" failed: ${reasonOf(error)}`, {
    publicMessage: `Model "${model}" failed: ${publicReasonOf(error, status)}`,
    details: {
      model,
      retryable:
        typeof told === 'boolean'
          ? told
          : status === 'UNAVAILABLE' || status === 'RESOURCE_EXHAUSTED',
      ...defined({ httpStatus, retryAfterMs }),
      ...(saysTooLong(error) && { contextOverflow: true }),
    },
    cause: thrown,
  });
}

/** Whether a model refused a request because it is longer than its context. */
export function isContextOverflow(error: unknown): boolean {
  return isWaymarkError(error) && property(error.details, 'contextOverflow') === true;
}

// Each provider says it in its own words: OpenAI and those who speak like it, Anthropic, Google, Bedrock.
const tooLong =
  /context_length_exceeded|maximum context length|exceeds? the context window|exceed context limit|prompt is too long|input is too long|input token count.*exceeds the maximum/i;

function saysTooLong(error: unknown): boolean {
  const body = property(error, 'responseBody');
  const code =
    property(property(property(error, 'data'), 'error'), 'code') ??
    property(property(error, 'error'), 'code');
  const told = [reasonOf(error), code, typeof body === 'string' ? body.slice(0, 10_000) : ''];
  return tooLong.test(told.join('\n'));
}

/** The error of a model that violated its protocol; a retry often helps. */
export function badStream(
  model: string,
  problem: string,
  {
    status = 'UNAVAILABLE',
    cause,
    publicProblem = problem,
  }: {
    readonly status?: Status;
    readonly cause?: unknown;
    /** The problem without what the provider said. */
    readonly publicProblem?: string;
  } = {},
): WaymarkError {
  return new WaymarkError(status, `Model "${model}" ${problem}`, {
    publicMessage: `Model "${model}" ${publicProblem}`,
    details: { model, retryable: true },
    cause,
  });
}

function statusOf(error: unknown, httpStatus: number | undefined): Status {
  // A connection that breaks in the middle of an answer has the status of a good one.
  if (isNetworkError(error)) return 'UNAVAILABLE';
  if (httpStatus !== undefined) return statusOfHttp(httpStatus);
  const name = property(error, 'name');
  const known = typeof name === 'string' ? statusOfName[name] : undefined;
  if (known) return known;
  // Errors inside a stream come without an HTTP status, as the provider's own JSON.
  return error instanceof Error ? 'INTERNAL' : statusOfBody(property(error, 'error') ?? error);
}

const statusOfName: Readonly<Record<string, Status>> = {
  AbortError: 'CANCELLED',
  TimeoutError: 'DEADLINE_EXCEEDED',
  // The provider could not be reached: what it would have answered has a status.
  AI_APICallError: 'UNAVAILABLE',
  AI_RetryError: 'UNAVAILABLE',
  AI_LoadAPIKeyError: 'UNAUTHENTICATED',
  AI_NoSuchModelError: 'NOT_FOUND',
  AI_InvalidPromptError: 'INVALID_ARGUMENT',
  AI_InvalidArgumentError: 'INVALID_ARGUMENT',
  AI_UnsupportedFunctionalityError: 'INVALID_ARGUMENT',
};

function statusOfHttp(status: number): Status {
  if (status >= 500) return status === 501 ? 'UNIMPLEMENTED' : 'UNAVAILABLE';
  switch (status) {
    case 401:
      return 'UNAUTHENTICATED';
    case 403:
      return 'PERMISSION_DENIED';
    case 404:
      return 'NOT_FOUND';
    case 408:
    case 409:
      return 'UNAVAILABLE';
    case 429:
      return 'RESOURCE_EXHAUSTED';
    default:
      // So does an answer that cannot be read.
      return status >= 400 ? 'INVALID_ARGUMENT' : 'INTERNAL';
  }
}

// Providers name a kind of error in words of their own, or repeat the HTTP status.
function statusOfBody(body: unknown): Status {
  const code = property(body, 'code');
  if (typeof code === 'number' && code >= 400) return statusOfHttp(code);
  const words = [property(body, 'type'), code, property(body, 'status')].join(' ').toLowerCase();
  if (/rate_?limit|quota|resource_exhausted/.test(words)) return 'RESOURCE_EXHAUSTED';
  if (/authentication|unauthenticated|api_key/.test(words)) return 'UNAUTHENTICATED';
  if (/permission/.test(words)) return 'PERMISSION_DENIED';
  if (/invalid_(request|argument|prompt)|context_length/.test(words)) return 'INVALID_ARGUMENT';
  if (/not_found/.test(words)) return 'NOT_FOUND';
  return 'UNAVAILABLE';
}

// The reason stands at the end of a chain of causes.
function isNetworkError(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error)) return false;
  const code = property(error, 'code');
  if (typeof code === 'string' && /^(E[A-Z]{3,}|UND_ERR_)/.test(code)) return true;
  if (error.name === 'TypeError' && /fetch failed|terminated|network/i.test(error.message)) {
    return true;
  }
  return depth < 5 && isNetworkError(error.cause, depth + 1);
}

// A provider's own JSON has its message one level down.
function reasonOf(error: unknown): string {
  const inner = property(error, 'error');
  const isBody =
    property(error, 'message') === undefined && property(inner, 'message') !== undefined;
  return messageOf(isBody ? inner : error);
}

// The message of a provider or its driver names accounts, hosts and keys: it is not for the client.
function publicReasonOf(error: unknown, status: Status): string {
  if (isNetworkError(error)) return 'the connection to the provider failed or broke off.';
  return publicReasons[status] ?? 'an unexpected error occurred.';
}

const publicReasons: Partial<Record<Status, string>> = {
  UNAUTHENTICATED: 'the provider refused the credentials.',
  PERMISSION_DENIED: 'the provider refused the credentials.',
  RESOURCE_EXHAUSTED: 'the provider accepts no more requests for now. Try again later.',
  UNAVAILABLE: 'the provider is not available. Try again.',
  DEADLINE_EXCEEDED: 'the provider took too long.',
  INVALID_ARGUMENT: 'the provider refused the request.',
  NOT_FOUND: 'the provider does not know the model.',
};

function retryAfter(headers: unknown): number | undefined {
  const ms = Number(property(headers, 'retry-after-ms') ?? Number.NaN);
  const seconds = Number(property(headers, 'retry-after') ?? Number.NaN);
  const after = Number.isFinite(ms) ? ms : seconds * 1000;
  return Number.isFinite(after) ? after : undefined;
}

function property(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && key in value
    ? value[key as keyof typeof value]
    : undefined;
}

function numberOf(value: unknown, key: string): number | undefined {
  const found = property(value, key);
  return typeof found === 'number' ? found : undefined;
}
