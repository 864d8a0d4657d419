import type { Message, ToolRequestPart } from '../protocol/message.ts';
import { toolRequestsOf } from '../protocol/messages/tool-round.ts';
import { toolMessage } from './message.ts';
import type { Progress, ToolOutcome } from './progress.ts';

/**
 * Adds what the tools of a model message came to. If one was interrupted, the message itself says so, and keeps the results
 * of the others until the interrupt is answered: it is then given back, and the conversation ends with it.
 */
export function addResults(
  progress: Progress,
  message: Message,
  outcomes: readonly ToolOutcome[],
): Message | undefined {
  const responses = outcomes.flatMap((outcome) =>
    'response' in outcome ? [outcome.response] : [],
  );
  if (responses.length === outcomes.length) {
    progress.add(toolMessage(responses));
    return undefined;
  }
  const requests = toolRequestsOf(message);
  const content = message.content.map((part) => {
    const outcome = outcomes[requests.indexOf(part as ToolRequestPart)];
    return outcome && 'toolRequest' in part ? withOutcome(part, outcome) : part;
  });
  return progress.replaceLast({ ...message, content });
}

/**
 * Adds what came of answering interrupts, as a message behind the one that asked: what is stored stays as it is. A tool
 * that was interrupted again is named there, so that it can be answered next; the message is then given back.
 */
export function addResumed(
  progress: Progress,
  outcomes: readonly ToolOutcome[],
): Message | undefined {
  const isWaiting = outcomes.some((outcome) => 'interrupted' in outcome);
  const content = outcomes.map((outcome) =>
    'response' in outcome ? outcome.response : outcome.interrupted,
  );
  const message = progress.add(toolMessage(content));
  return isWaiting ? message : undefined;
}

function withOutcome(part: ToolRequestPart, outcome: ToolOutcome): ToolRequestPart {
  if ('interrupted' in outcome) return outcome.interrupted;
  const { toolResponse, metadata } = outcome.response;
  return {
    toolRequest: part.toolRequest,
    metadata: {
      ...part.metadata,
      ...metadata,
      pendingOutput: toolResponse.output ?? null,
      ...(toolResponse.content && { pendingContent: toolResponse.content }),
    },
  };
}
