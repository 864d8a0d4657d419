import { defined, isJsonObject, type Json } from '../core/json/json.ts';
import type { ToolOutcome } from '../generate/hooks.ts';
import { keptResponse } from '../generate/tool/resume.ts';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import {
  isInterrupted,
  openToolRequests,
  requestKey,
  toolRequestsOf,
} from '../protocol/messages.ts';
import { recordOf, type ToolRecord, withoutRecord } from '../protocol/tool-record.ts';

/** A tool call of a turn, with what it came to. */
export interface ToolCall {
  /** The name of the tool. */
  readonly name: string;
  /** The id that the model gave the call. */
  readonly ref?: string;
  /** The input of the call. */
  readonly input: Json;
  /** The result of the tool; absent while the call waits for an answer. */
  readonly output?: Json;
  /** Parts that the tool attached. */
  readonly content?: Json;
  /** The error of a failed call. */
  readonly error?: Json;
  /** The question to the user, while the call waits for an answer. */
  readonly interrupt?: Json;
  /** The effects of the call on the session; absent if it did nothing, or was recorded by an older version. */
  readonly record?: ToolRecord;
}

/** The calls of a turn: those that its first message answers, then those of its model messages, in order. */
export function toolCallsOf(before: readonly Message[], added: readonly Message[]): ToolCall[] {
  const calls: ToolCall[] = [];
  let open: readonly ToolRequestPart[] = openToolRequests(before);
  for (const message of added) {
    if (message.role === 'tool') calls.push(...answered(open, message));
    // Calls of an interrupted message stay open when the turn ends; they belong to this turn and to the one that answers.
    else calls.push(...waiting(open));
    open = message.role === 'model' ? toolRequestsOf(message) : [];
  }
  return [...calls, ...waiting(open)];
}

function answered(open: readonly ToolRequestPart[], message: Message): ToolCall[] {
  const requests = new Map(open.map((part) => [requestKey(part.toolRequest), part]));
  return message.content.flatMap((part) => {
    if ('toolResponse' in part) {
      const request = requests.get(requestKey(part.toolResponse));
      return request === undefined ? [] : [callOf(request, { response: part })];
    }
    if ('toolRequest' in part) return [callOf(part, { interrupted: part })];
    return [];
  });
}

/** Requests of a message that ended its turn: interrupted ones, and their finished siblings. */
function waiting(open: readonly ToolRequestPart[]): ToolCall[] {
  return open.flatMap((part) => {
    const kept = keptResponse(part);
    if (kept !== undefined) return [callOf(part, { response: kept })];
    return isInterrupted(part) ? [callOf(part, { interrupted: part })] : [];
  });
}

function callOf(request: ToolRequestPart, outcome: ToolOutcome): ToolCall {
  const { name, ref, input = null } = request.toolRequest;
  const part = 'response' in outcome ? outcome.response : outcome.interrupted;
  const record = recordOf(part);
  const { interrupt = true, error } = part.metadata ?? {};
  const result =
    'toolResponse' in part
      ? { output: part.toolResponse.output ?? null, content: part.toolResponse.content, error }
      : { interrupt };
  return { name, input: record?.input ?? input, ...defined({ ref, ...result, record }) };
}

/** The outcome of a recorded call, as the answer to a request that asks the same. */
export function outcomeOf(call: ToolCall, request: ToolRequestPart): ToolOutcome {
  const { interrupt, output = null, content, error } = call;
  const { name, ref } = request.toolRequest;
  if (interrupt !== undefined) {
    const { toolRequest, metadata = {} } = withoutRecord(request);
    // A call that was interrupted before still has the deadline of that interrupt.
    const { expiresAt: _, onExpiry: __, ...kept } = metadata;
    return { interrupted: { toolRequest, metadata: { ...kept, interrupt } } };
  }
  return {
    response: {
      toolResponse: {
        ...defined({ name, ref }),
        output,
        ...(Array.isArray(content) && { content: content.filter(isJsonObject) }),
      },
      ...(error !== undefined && { metadata: { error } }),
    },
  };
}
