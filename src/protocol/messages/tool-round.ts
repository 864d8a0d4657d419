import type { Message, Part, ToolRequest, ToolRequestPart } from '../message.ts';

/** Tells the requests of one message apart; a request and its response have the same. */
export function requestKey({ name, ref }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return `${name}\n${ref ?? ''}`;
}

/** The tool requests of a message or chunk, without those that the provider ran itself. */
export function toolRequestsOf({
  content,
}: {
  readonly content: readonly Part[];
}): ToolRequestPart[] {
  return content.filter(
    (part): part is ToolRequestPart =>
      'toolRequest' in part && part.metadata?.providerExecuted !== true,
  );
}

/** The tool requests at the end of a conversation: those of the latest model message, and what came back for them. */
export interface ToolRound {
  /** All requests of the latest model message, in its order; one that was interrupted again as it is now. */
  readonly requests: readonly ToolRequestPart[];
  /** The requests that were answered in messages behind it, by request key. */
  readonly answered: ReadonlySet<string>;
}

/** The tool requests a conversation ends with; `undefined` if it ends with something else. */
export function lastToolRound(messages: readonly Message[]): ToolRound | undefined {
  let at = messages.length - 1;
  while (messages[at]?.role === 'tool') at--;
  const message = messages[at];
  if (message?.role !== 'model') return undefined;
  const requests = message.content.filter((part) => 'toolRequest' in part);
  if (requests.length === 0) return undefined;
  const answered = new Set<string>();
  const again = new Map<string, ToolRequestPart>();
  for (const { content } of messages.slice(at + 1)) {
    for (const part of content) {
      if ('toolResponse' in part) answered.add(requestKey(part.toolResponse));
      else if ('toolRequest' in part) again.set(requestKey(part.toolRequest), part);
    }
  }
  return {
    requests: requests.map((part) => again.get(requestKey(part.toolRequest)) ?? part),
    answered,
  };
}

/** The unanswered tool requests at the end of a conversation, including finished siblings of an interrupt. */
export function openToolRequests(messages: readonly Message[]): readonly ToolRequestPart[] {
  const round = lastToolRound(messages);
  if (!round) return [];
  return round.requests.filter(({ toolRequest }) => !round.answered.has(requestKey(toolRequest)));
}

/** The open requests that are interrupts and wait for an answer. */
export function pendingInterrupts(messages: readonly Message[]): readonly ToolRequestPart[] {
  return openToolRequests(messages).filter(isInterrupted);
}

/** Whether a request was interrupted and waits for an answer. A tool may interrupt with any value but `false`. */
export function isInterrupted({ metadata }: Pick<ToolRequestPart, 'metadata'>): boolean {
  return metadata?.interrupt !== undefined && metadata.interrupt !== false;
}
