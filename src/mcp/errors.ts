import { abortError } from '../core/async/signal.ts';
import { isWaymarkError, messageOf, type Status, WaymarkError } from '../core/error.ts';

export interface FailedCall {
  readonly server: string;
  /** `the call to "search"`, as it reads in a sentence. */
  readonly doing: string;
  readonly signal?: AbortSignal | undefined;
}

const maxMessageLength = 2_000;

/**
 * Something that the client package threw, as an error for the model and for `onError`. What the server itself said goes to
 * the model, as it says how to do better. Addresses, commands and the texts of other errors stay in this process.
 */
export function toMcpError(error: unknown, call: FailedCall): WaymarkError {
  if (call.signal?.aborted) return abortError(call.signal);
  if (isWaymarkError(error)) return error;
  const { server, doing } = call;
  const who = `MCP server "${server}"`;
  const text = messageOf(error).slice(0, maxMessageLength);
  const code = codeOf(error);
  if (typeof code === 'number') {
    const status: Status = code === -32602 || code === -32601 ? 'INVALID_ARGUMENT' : 'UNKNOWN';
    return new WaymarkError(status, `${who} refused ${doing}: ${text}`, { cause: error });
  }
  const [status, message] = explain(code, statusOf(error));
  const said = `${who} ${message}`.replace('{doing}', doing);
  return new WaymarkError(status, `${said} (${text})`, { cause: error, publicMessage: said });
}

function explain(
  code: string | undefined,
  httpStatus: number | undefined,
): readonly [Status, string] {
  if (httpStatus === 401 || code === 'CLIENT_HTTP_AUTHENTICATION') {
    return ['UNAUTHENTICATED', 'requires authorization. Check its `headers` or `auth`.'];
  }
  if (httpStatus === 403 || code === 'CLIENT_HTTP_FORBIDDEN') {
    return ['PERMISSION_DENIED', 'denied access. Check its `headers` or `auth`.'];
  }
  switch (code) {
    case 'REQUEST_TIMEOUT':
      return ['DEADLINE_EXCEEDED', 'did not answer {doing} in time.'];
    case 'CONNECTION_CLOSED':
    case 'NOT_CONNECTED':
    case 'SEND_FAILED':
      return [
        'UNAVAILABLE',
        'closed the connection during {doing}. Whether it had an effect is unknown.',
      ];
    case 'INVALID_RESULT':
      return ['INTERNAL', 'answered {doing} with something that is not valid MCP.'];
    default:
      return ['UNAVAILABLE', 'cannot be reached: {doing} failed.'];
  }
}

function codeOf(error: unknown): string | number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  if (error.constructor.name === 'UnauthorizedError') return 'CLIENT_HTTP_AUTHENTICATION';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' || typeof code === 'number' ? code : undefined;
}

function statusOf(error: unknown): number | undefined {
  const { status } = (error ?? {}) as { readonly status?: unknown };
  return typeof status === 'number' ? status : undefined;
}
