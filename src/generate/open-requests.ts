import type { JsonObject } from '../core/json.ts';
import type {
  Message,
  ToolRequest,
  ToolRequestPart,
  ToolResponsePart,
} from '../protocol/message.ts';
import { toolMessage, toolRequestsOf } from './message.ts';

/** Tells the requests of one message apart; a request and its response have the same. */
export function requestKey({ name, ref }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return `${name}\n${ref ?? ''}`;
}

/** The tool requests at the end of a conversation: those of the latest model message, and what came back for them. */
export interface ToolRound {
  /** All requests of the latest model message, in its order; one that was interrupted again as it is now. */
  readonly requests: readonly ToolRequestPart[];
  /** What has been answered in messages behind it, by request key. */
  readonly answered: ReadonlySet<string>;
}

/** The tool requests a conversation ends with; `undefined` if it ends with something else. */
export function lastToolRound(messages: readonly Message[]): ToolRound | undefined {
  const answered = new Set<string>();
  const again = new Map<string, ToolRequestPart>();
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === 'tool') {
      for (const part of message.content) {
        if ('toolResponse' in part) answered.add(requestKey(part.toolResponse));
        else if ('toolRequest' in part) {
          const key = requestKey(part.toolRequest);
          if (!again.has(key)) again.set(key, part);
        }
      }
      continue;
    }
    if (message?.role !== 'model') return undefined;
    const requests = toolRequestsOf(message);
    if (requests.length === 0) return undefined;
    return {
      requests: requests.map((part) => again.get(requestKey(part.toolRequest)) ?? part),
      answered,
    };
  }
  return undefined;
}

/** The requests that a conversation ends with and that nobody has answered, finished siblings of an interrupt included. */
export function openToolRequests(messages: readonly Message[]): readonly ToolRequestPart[] {
  const round = lastToolRound(messages);
  if (!round) return [];
  return round.requests.filter(({ toolRequest }) => !round.answered.has(requestKey(toolRequest)));
}

/** The interrupted ones of the open requests: those that wait for somebody. */
export function pendingInterrupts(messages: readonly Message[]): readonly ToolRequestPart[] {
  return openToolRequests(messages).filter(isInterrupted);
}

/** Whether a request was interrupted and waits for an answer. */
export function isInterrupted({ metadata }: ToolRequestPart): boolean {
  return metadata?.interrupt !== undefined;
}

/** Why open requests are closed without an answer. */
export type CloseReason = 'declined' | 'aborted';

const closings = {
  declined: 'Not answered: the user declined and went on with the next message.',
  aborted: 'Not finished: it was stopped. Whether it had an effect is unknown.',
} as const satisfies Record<CloseReason, string>;

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
export function keptResponse({
  toolRequest: { name, ref },
  metadata,
}: ToolRequestPart): ToolResponsePart | undefined {
  if (!metadata || !('pendingOutput' in metadata)) return undefined;
  const output = metadata.pendingOutput ?? null;
  const { error } = metadata;
  return respond({ name, ref }, output, error === undefined ? undefined : { error });
}

/** The response to a request that is not going to be answered. */
export function closedResponse(
  { toolRequest }: ToolRequestPart,
  reason: CloseReason,
): ToolResponsePart {
  const status = reason === 'declined' ? 'CANCELLED' : 'ABORTED';
  return respond(toolRequest, closings[reason], { error: { status, reason } });
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
