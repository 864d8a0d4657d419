import type { Part, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import { type AguiEvent, asText, toolCallId } from './shapes.ts';

/** Writes what one agent says: the agent of the run, or one of its sub-agents. A lane has at most one message open. */
export class Lane {
  readonly #push: (event: AguiEvent) => void;
  /** Names the sub-agent in each event. */
  readonly #tag: { readonly subagentRunId?: string };
  /** Results that the client has posted itself. */
  readonly #answered: ReadonlySet<string>;
  readonly #asked = new Set<string>();
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;

  constructor(
    push: (event: AguiEvent) => void,
    { subagentRunId, answered }: { subagentRunId?: string; answered?: ReadonlySet<string> } = {},
  ) {
    this.#push = push;
    this.#tag = subagentRunId === undefined ? {} : { subagentRunId };
    this.#answered = answered ?? new Set();
  }

  /** The calls that were made here. */
  get asked(): ReadonlySet<string> {
    return this.#asked;
  }

  part(part: Part, messageId: string): void {
    if ('text' in part) this.#write('text', messageId, part.text);
    else if ('reasoning' in part)
      this.#write('reasoning', `${messageId}:reasoning`, part.reasoning);
    else if ('toolRequest' in part) this.request(part, messageId);
    else if ('toolResponse' in part) this.#response(part, messageId);
    else {
      // Media, data and the like: the protocol has no place for them in an answer.
      const { metadata: _, ...value } = part;
      this.#push({ type: 'CUSTOM', name: 'part', value: { messageId, ...value }, ...this.#tag });
    }
  }

  request({ toolRequest }: ToolRequestPart, parentMessageId: string): void {
    const id = this.#idOf(toolRequest);
    if (this.#asked.has(id)) return;
    this.#asked.add(id);
    this.close();
    const call = { toolCallId: id, ...this.#tag };
    const { name, input } = toolRequest;
    this.#push({ type: 'TOOL_CALL_START', toolCallName: name, parentMessageId, ...call });
    this.#push({ type: 'TOOL_CALL_ARGS', delta: asText(input ?? {}), ...call });
    this.#push({ type: 'TOOL_CALL_END', ...call });
  }

  close(): void {
    if (this.#open === undefined) return;
    const { kind, id: messageId } = this.#open;
    this.#open = undefined;
    if (kind === 'text') {
      this.#push({ type: 'TEXT_MESSAGE_END', messageId, ...this.#tag });
      return;
    }
    this.#push({ type: 'REASONING_MESSAGE_END', messageId, ...this.#tag });
    this.#push({ type: 'REASONING_END', messageId, ...this.#tag });
  }

  #write(kind: 'text' | 'reasoning', messageId: string, delta: string): void {
    if (delta === '') return;
    if (this.#open?.id !== messageId) {
      this.close();
      this.#open = { kind, id: messageId };
      this.#start(kind, messageId);
    }
    const type = kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    this.#push({ type, messageId, delta, ...this.#tag });
  }

  #start(kind: 'text' | 'reasoning', messageId: string): void {
    const about = { messageId, ...this.#tag };
    if (kind === 'text') {
      this.#push({ type: 'TEXT_MESSAGE_START', role: 'assistant', ...about });
      return;
    }
    this.#push({ type: 'REASONING_START', ...about });
    this.#push({ type: 'REASONING_MESSAGE_START', role: 'reasoning', ...about });
  }

  #response({ toolResponse, metadata }: ToolResponsePart, messageId: string): void {
    const id = this.#idOf(toolResponse);
    const { output = null } = toolResponse;
    this.close();
    if (metadata?.partial === true) {
      const value = { toolCallId: id, output };
      this.#push({ type: 'CUSTOM', name: 'tool_progress', value, ...this.#tag });
      return;
    }
    if (this.#answered.has(id)) return;
    this.#push({
      type: 'TOOL_CALL_RESULT',
      messageId: `${messageId}:${id}`,
      toolCallId: id,
      role: 'tool',
      content: asText(output),
      ...(metadata?.error !== undefined && { metadata: { error: true } }),
      ...this.#tag,
    });
  }

  // Calls of a sub-agent are numbered on their own: its name tells them from those of the agent.
  #idOf(call: Parameters<typeof toolCallId>[0]): string {
    const { subagentRunId } = this.#tag;
    const id = toolCallId(call);
    return subagentRunId === undefined ? id : `${subagentRunId}/${id}`;
  }
}
