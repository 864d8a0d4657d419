import { hasStatus, isStatus, type Status, WaymarkError } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';

export function fromErrorBody(body: unknown): WaymarkError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { status, message, details } = body as Readonly<Record<string, unknown>>;
  if (!isStatus(status) || typeof message !== 'string') return undefined;
  // The body was parsed from JSON, so `details` is JSON.
  return new WaymarkError(status, message, { details: details as Json | undefined });
}

/** The error of a response that is not ok. If it is not ours (a proxy's, say), its status follows from HTTP's. */
export async function responseError(response: Response): Promise<WaymarkError> {
  const text = await response.text().catch(() => '');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Not ours; the HTTP status is all there is.
  }
  return fromErrorBody(body) ?? foreignResponse(response, statusOf(response.status));
}

// Errors that no Waymark server sent.
const foreign = new WeakSet<object>();

/** The error of a response that no Waymark server sends, such as the page of another site or the answer of a proxy. */
export function foreignResponse(response: Response, status: Status, cause?: unknown): WaymarkError {
  const { url, headers } = response;
  const where = url === '' ? 'The server' : url.replace(/[?#].*$/, '');
  const [type] = (headers.get('content-type') ?? '').split(';');
  const what = `HTTP ${response.status}${type ? ` and ${type}` : ''}`;
  const error = new WaymarkError(
    status,
    `${where} answered with ${what}, which is not an answer of a Waymark server. Check the \`url\` of createClient().`,
    { cause },
  );
  foreign.add(error);
  return error;
}

/** Whether an error says that a Waymark server does not have something. */
export function isNotFound(error: unknown): boolean {
  return hasStatus(error, 'NOT_FOUND') && !foreign.has(error);
}

const statusByHttp: Readonly<Record<number, Status>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  413: 'RESOURCE_EXHAUSTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

function statusOf(http: number): Status {
  return statusByHttp[http] ?? (http >= 500 ? 'INTERNAL' : 'UNKNOWN');
}
