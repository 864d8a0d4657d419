import { isStatus, type Status, WaymarkError } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';

/** Converts an error body to an error. */
export function fromErrorBody(body: unknown): WaymarkError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { status, message, details } = body as Readonly<Record<string, unknown>>;
  if (!isStatus(status) || typeof message !== 'string') return undefined;
  // It was JSON a moment ago, so what it holds is JSON.
  return new WaymarkError(status, message, { details: details as Json | undefined });
}

/** The error of a response that is not ok; for one that is not ours (a proxy's, say), derived from the HTTP status. */
export async function responseError(response: Response): Promise<WaymarkError> {
  const text = await response.text().catch(() => '');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Not ours; the HTTP status is all there is.
  }
  return (
    fromErrorBody(body) ??
    new WaymarkError(
      statusOf(response.status),
      `The server answered with HTTP ${response.status} and no error body. Is this the URL of a Waymark server?`,
    )
  );
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
