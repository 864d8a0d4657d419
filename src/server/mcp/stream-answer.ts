import { jsonResponse } from '../http/answer.ts';
import {
  errorMessage,
  type Fields,
  logRpcFault,
  resultMessage,
  toRpcError,
} from '../http/json-rpc.ts';
import { sseFormat, sseJson, wantsEvents, withStreamSlot } from '../stream/stream-response.ts';
import { inEra, type McpRequest } from './mcp-server.ts';
import { fromErrorBody } from './messages.ts';

export interface StreamIo {
  /** Aborts when the client has left, or the server ends. */
  readonly reader: AbortSignal;
  /** Whether messages can be sent before the response. */
  readonly isStream: boolean;
}

/** The messages before a response, and its result. */
export type Messages = AsyncGenerator<readonly Fields[], Fields>;

const format = sseFormat<Fields>((message) => sseJson(message, 'message'));

/**
 * Answers a request that takes a while: as a stream where the client takes one, with signs of life while nothing happens.
 * Errors that `start` throws at once are thrown here, too, before anything is sent.
 */
export async function streamAnswer(
  request: McpRequest,
  start: (io: StreamIo) => Messages,
): Promise<Response> {
  const { c } = request;
  return await withStreamSlot(c, async (slot) => {
    const isStream = wantsEvents(c);
    const messages = untilResponse(request, start({ reader: slot.signal, isStream }));
    if (isStream) return slot.respond(messages, format);
    let last: Fields = {};
    for await (const batch of messages) last = batch.at(-1) ?? last;
    return jsonResponse(last);
  });
}

async function* untilResponse(
  request: McpRequest,
  messages: Messages,
): AsyncGenerator<readonly Fields[]> {
  const { id, c } = request;
  try {
    yield [resultMessage(id, inEra(request, yield* messages))];
  } catch (error) {
    logRpcFault(c, error);
    yield [errorMessage(id, toRpcError(error, fromErrorBody))];
  }
}
