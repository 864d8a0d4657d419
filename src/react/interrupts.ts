import type { Json } from '../core/json/json.ts';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import { pendingInterrupts as pendingRequests } from '../protocol/messages/tool-round.ts';
import type { Resume } from '../protocol/turn.ts';

/** The answer to one interrupt. The store sends the answers once every interrupt of the message has one. */
export type PendingAnswer =
  | { readonly type: 'respond'; readonly output: Json }
  | { readonly type: 'restart'; readonly resumed: Json };

/** A tool call that waits for an answer, as `view.interrupts` shows it. */
export interface PendingInterrupt {
  /** Distinguishes the interrupts of one message. */
  readonly key: string;
  /** The tool's name. */
  readonly name: string;
  readonly input: Json | undefined;
  /** What the tool interrupted with; `true` when it gave nothing. */
  readonly data: Json;
  readonly request: ToolRequestPart;
  /** Its answer, while other interrupts still wait for theirs. */
  readonly answer?: PendingAnswer;
}

/** The interrupts a conversation ends with. */
export function pendingInterrupts(messages: readonly Message[]): readonly PendingInterrupt[] {
  return pendingRequests(messages).map((request) => {
    const { name, ref = '', input } = request.toolRequest;
    return {
      key: `${name} ${ref}`,
      name,
      input,
      data: request.metadata?.interrupt ?? null,
      request,
    };
  });
}

/** The input that answers all of them; `undefined` while one has no answer. */
export function toResume(interrupts: readonly PendingInterrupt[]): Resume | undefined {
  const respond: Resume['respond'] = [];
  const restart: Resume['restart'] = [];
  for (const { request, answer } of interrupts) {
    const { toolRequest } = request;
    if (!answer) return undefined;
    if (answer.type === 'restart') {
      restart.push({ toolRequest, metadata: { resumed: answer.resumed } });
    } else {
      const { name, ref } = toolRequest;
      respond.push({
        toolResponse: { name, ...(ref !== undefined && { ref }), output: answer.output },
      });
    }
  }
  return {
    ...(respond.length > 0 && { respond }),
    ...(restart.length > 0 && { restart }),
  };
}
