import type { Part, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import { toolCallId } from '../http/turns-of.ts';
import { type AguiEvent, asText } from './shapes.ts';

/** Writes what one agent says: the agent of the run, or one of its sub-agents. A lane has at most one message open. */
export class Lane {
  readonly #out: (event: AguiEvent) => void;
  /** Names the sub-agent in each event. */
  readonly #subagentRunId: string | undefined;
  /** Results that the client has posted itself. */
  readonly #answered: ReadonlySet<string>;
  readonly #asked = new Set<string>();
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;

  constructor(
    out: (event: AguiEvent) => void,
    { subagentRunId, answered }: { subagentRunId?: string; answered?: ReadonlySet<string> } = {},
  ) {
    this.#out = out;
    this.#subagentRunId = subagentRunId;
    this.#answered = answered ?? new Set();
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
      this.#push({ type: 'CUSTOM', name: 'part', value: { messageId, ...value } });
    }
  }

  request({ toolRequest }: ToolRequestPart, parentMessageId: string): void {
    const id = this.#idOf(toolRequest);
    if (this.#asked.has(id)) return;
    this.#asked.add(id);
    this.close();
    const { name, input } = toolRequest;
    const call = { toolCallId: id };
    this.#push({ type: 'TOOL_CALL_START', toolCallName: name, parentMessageId, ...call });
    this.#push({ type: 'TOOL_CALL_ARGS', delta: asText(input ?? {}), ...call });
    this.#push({ type: 'TOOL_CALL_END', ...call });
  }

  close(): void {
    if (this.#open === undefined) return;
    const { kind, id: messageId } = this.#open;
    this.#open = undefined;
    if (kind === 'text') this.#push({ type: 'TEXT_MESSAGE_END', messageId });
    else {
      this.#push({ type: 'REASONING_MESSAGE_END', messageId });
      this.#push({ type: 'REASONING_END', messageId });
    }
  }

  #write(kind: 'text' | 'reasoning', messageId: string, delta: string): void {
    if (delta === '') return;
    const isText = kind === 'text';
    if (this.#open?.id !== messageId) {
      this.close();
      this.#open = { kind, id: messageId };
      if (isText) this.#push({ type: 'TEXT_MESSAGE_START', role: 'assistant', messageId });
      else {
        this.#push({ type: 'REASONING_START', messageId });
        this.#push({ type: 'REASONING_MESSAGE_START', role: 'reasoning', messageId });
      }
    }
    const type = isText ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    this.#push({ type, messageId, delta });
  }

  #response({ toolResponse, metadata }: ToolResponsePart, messageId: string): void {
    const id = this.#idOf(toolResponse);
    const { output = null } = toolResponse;
    this.close();
    if (metadata?.partial === true) {
      this.#push({ type: 'CUSTOM', name: 'tool_progress', value: { toolCallId: id, output } });
    } else if (!this.#answered.has(id)) {
      this.#push({
        type: 'TOOL_CALL_RESULT',
        messageId: `${messageId}:${id}`,
        toolCallId: id,
        role: 'tool',
        content: asText(output),
        metadata: metadata?.error === undefined ? undefined : { error: true },
      });
    }
  }

  // Calls of a sub-agent are numbered on their own: its name tells them from those of the agent.
  #idOf(call: Parameters<typeof toolCallId>[0]): string {
    const id = toolCallId(call);
    return this.#subagentRunId === undefined ? id : `${this.#subagentRunId}/${id}`;
  }

  #push(event: AguiEvent): void {
    this.#out({ ...event, subagentRunId: this.#subagentRunId });
  }
}
