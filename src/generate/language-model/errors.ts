import { isWaymarkError, type Status, WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json.ts';

/** What went wrong in a provider as our error: the right status, and in `details` whether trying again may help. */
export function fromProviderError(thrown: unknown, model: string): WaymarkError {
  if (isWaymarkError(thrown)) return thrown;
  const error = unwrap(thrown);
  const httpStatus = numberOf(error, 'statusCode') ?? numberOf(error, 'status');
  const status = statusOf(error, httpStatus);
  const retryable =
    booleanOf(error, 'isRetryable') ??
    (status === 'UNAVAILABLE' || status === 'RESOURCE_EXHAUSTED');
  const retryAfterMs = retryAfter(error);
  const details: JsonObject = {
    model,
    retryable,
    ...(httpStatus !== undefined && { httpStatus }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
  // What a provider says about our credentials is not for whoever sent the message.
  const reason =
    status === 'UNAUTHENTICATED' || status === 'PERMISSION_DENIED'
      ? 'the provider refused the credentials; check its API key.'
      : messageOf(error);
  return new WaymarkError(status, `Model "${model}" failed: ${reason}`, { details, cause: thrown });
}

/** The error for a model that broke the rules of its own protocol; asking again often helps. */
export function badStream(
  model: string,
  problem: string,
  { status = 'UNAVAILABLE', cause }: { readonly status?: Status; readonly cause?: unknown } = {},
): WaymarkError {
  return new WaymarkError(status, `Model "${model}" ${problem}`, {
    details: { model, retryable: true },
    cause,
  });
}

// A provider's own retry wrapper hides what happened in its last error.
function unwrap(error: unknown): unknown {
  const last = property(error, 'lastError');
  return last === undefined ? error : last;
}

function statusOf(error: unknown, httpStatus: number | undefined): Status {
  if (httpStatus !== undefined) return statusOfHttp(httpStatus);
  switch (property(error, 'name')) {
    case 'AbortError':
      return 'CANCELLED';
    case 'TimeoutError':
      return 'DEADLINE_EXCEEDED';
    case 'AI_LoadAPIKeyError':
      return 'UNAUTHENTICATED';
    case 'AI_NoSuchModelError':
      return 'NOT_FOUND';
    case 'AI_InvalidPromptError':
    case 'AI_InvalidArgumentError':
    case 'AI_UnsupportedFunctionalityError':
      return 'INVALID_ARGUMENT';
    case 'AI_JSONParseError':
    case 'AI_TypeValidationError':
    case 'AI_InvalidResponseDataError':
      return 'INTERNAL';
    default:
      return statusOfType(error);
  }
}

// Errors inside a stream come without an HTTP status, as the provider's own JSON, which names a type or a code.
function statusOfType(error: unknown): Status {
  const inner = property(error, 'error') ?? error;
  const code = property(inner, 'code');
  if (typeof code === 'number' && code >= 400) return statusOfHttp(code);
  const words = `${property(inner, 'type') ?? ''} ${code ?? ''} ${property(inner, 'status') ?? ''}`;
  if (/rate_?limit|quota|resource_exhausted/i.test(words)) return 'RESOURCE_EXHAUSTED';
  if (/authentication|unauthenticated|invalid_api_key/i.test(words)) return 'UNAUTHENTICATED';
  if (/permission/i.test(words)) return 'PERMISSION_DENIED';
  if (/invalid_request|invalid_argument|context_length/i.test(words)) return 'INVALID_ARGUMENT';
  if (/not_found/i.test(words)) return 'NOT_FOUND';
  // What has no known name is a connection that failed, or a provider in trouble.
  return 'UNAVAILABLE';
}

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
    // A malformed answer comes with the status of a good one.
    default:
      return status >= 400 ? 'INVALID_ARGUMENT' : 'INTERNAL';
  }
}

function retryAfter(error: unknown): number | undefined {
  const headers = property(error, 'responseHeaders');
  const ms = Number(property(headers, 'retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(ms)) return ms;
  const seconds = Number(property(headers, 'retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

function messageOf(error: unknown): string {
  if (typeof error === 'string') return error;
  const message = property(error, 'message') ?? property(property(error, 'error'), 'message');
  return typeof message === 'string' && message !== '' ? message : 'it gave no reason.';
}

function property(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

function numberOf(value: unknown, key: string): number | undefined {
  const found = property(value, key);
  return typeof found === 'number' ? found : undefined;
}

function booleanOf(value: unknown, key: string): boolean | undefined {
  const found = property(value, key);
  return typeof found === 'boolean' ? found : undefined;
}
