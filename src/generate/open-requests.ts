import type { Status } from '../core/error.ts';
import { isJsonObject, type Json, type JsonObject } from '../core/json/json.ts';
import type {
  Message,
  ToolRequest,
  ToolRequestPart,
  ToolResponsePart,
} from '../protocol/message.ts';
import { recordOf, withRecord } from '../protocol/messages/tool-record.ts';
import { openToolRequests } from '../protocol/messages/tool-round.ts';
import { toolMessage } from './message.ts';

/** Why open requests are closed without an answer. */
export type CloseReason = 'declined' | 'aborted' | 'expired';

const closings = {
  declined: 'Not answered: the user declined and went on with the next message.',
  aborted: 'Not finished: it was stopped. Whether it had an effect is unknown.',
  expired: 'Declined: there was no answer before the deadline.',
} as const satisfies Record<CloseReason, string>;

const statuses = {
  declined: 'CANCELLED',
  aborted: 'ABORTED',
  expired: 'DEADLINE_EXCEEDED',
} as const satisfies Record<CloseReason, Status>;

/**
 * The tool message that closes the open requests at the end of a conversation, so that every provider takes it: finished
 * siblings with their result, the others as declined or aborted. `undefined` if nothing is open.
 */
export function closeToolRequests(
  messages: readonly Message[],
  reason: CloseReason,
): Message | undefined {
  const open = openToolRequests(messages);
  if (open.length === 0) return undefined;
  return toolMessage(
    open.map((request) => keptResponse(request) ?? closedResponse(request, reason)),
  );
}

/** The result that an interrupt's sibling has already come to, as its response. */
export function keptResponse(request: ToolRequestPart): ToolResponsePart | undefined {
  const response = keptAnswer(request);
  return response && withRecord(response, recordOf(request));
}

function keptAnswer({
  toolRequest: { name, ref },
  metadata,
}: ToolRequestPart): ToolResponsePart | undefined {
  if (!metadata || !('pendingOutput' in metadata)) return undefined;
  const output = metadata.pendingOutput ?? null;
  const { error, pendingContent: content } = metadata;
  const response = respond({ name, ref }, output, error === undefined ? undefined : { error });
  if (!Array.isArray(content)) return response;
  return {
    ...response,
    toolResponse: { ...response.toolResponse, content: content.filter(isJsonObject) },
  };
}

/** The response to a request that is not going to be answered. */
export function closedResponse(
  { toolRequest }: ToolRequestPart,
  reason: CloseReason,
): ToolResponsePart {
  return respond(toolRequest, closings[reason], { error: { status: statuses[reason], reason } });
}

/** The response to a request that the user declined, with the reason for the model, if one was given. */
export function declinedResponse({ toolRequest }: ToolRequestPart, reason: Json): ToolResponsePart {
  const because = typeof reason === 'string' && reason !== '' ? ` The reason: ${reason}` : '';
  return respond(toolRequest, `The user declined.${because}`, {
    error: { status: 'CANCELLED', reason: 'declined' },
  });
}

/** A response to a request. */
export function respond(
  { name, ref }: Pick<ToolRequest, 'name' | 'ref'>,
  output: NonNullable<ToolResponsePart['toolResponse']['output']> | null,
  metadata?: JsonObject,
): ToolResponsePart {
  return {
    toolResponse: { name, ...(ref !== undefined && { ref }), output },
    ...(metadata && { metadata }),
  };
}
