import type { Json } from '../core/json.ts';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import type { Resume } from '../protocol/turn.ts';

/** How an interrupt was answered; sent when all interrupts of the message have an answer. */
export type InterruptAnswer =
  | { readonly type: 'respond'; readonly output: Json }
  | { readonly type: 'restart'; readonly resumed: Json };

/** A tool call that waits for somebody. */
export interface Interrupt {
  /** Tells it from others of the same message. */
  readonly key: string;
  /** The tool's name. */
  readonly name: string;
  readonly input: Json | undefined;
  /** What the tool interrupted with; `true` when it gave nothing. */
  readonly data: Json;
  readonly request: ToolRequestPart;
  /** What was answered already, while others still wait. */
  readonly answer?: InterruptAnswer;
}

/** The interrupts a conversation ends with. */
export function pendingInterrupts(messages: readonly Message[]): readonly Interrupt[] {
  const answered = new Set<string>();
  // A tool that was interrupted again after a restart stands in a tool message, with what it asks now.
  const again = new Map<string, ToolRequestPart>();
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === 'model') {
      return message.content
        .filter((part) => 'toolRequest' in part)
        .map((part) => again.get(keyOf(part.toolRequest)) ?? part)
        .flatMap(toInterrupt)
        .filter(({ key }) => !answered.has(key));
    }
    if (message?.role !== 'tool') return [];
    for (const part of message.content) {
      if ('toolResponse' in part) answered.add(keyOf(part.toolResponse));
      else if ('toolRequest' in part) {
        const key = keyOf(part.toolRequest);
        if (!again.has(key)) again.set(key, part);
      }
    }
  }
  return [];
}

/** The input that answers all of them; `undefined` while one has no answer. */
export function toResume(interrupts: readonly Interrupt[]): Resume | undefined {
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

function toInterrupt(request: ToolRequestPart): Interrupt[] {
  const data = request.metadata?.interrupt;
  if (data === undefined) return [];
  const { name, input } = request.toolRequest;
  return [{ key: keyOf(request.toolRequest), name, input, data, request }];
}

function keyOf({
  name,
  ref = '',
}: {
  readonly name: string;
  readonly ref?: string | undefined;
}): string {
  return `${name} ${ref}`;
}
