import type { Message, Part } from '../protocol/message.ts';

/** A message in the form that the GenAI conventions give it. */
interface TracedMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly parts: readonly object[];
}

/** Messages in the form that the GenAI conventions give them. */
export function tracedMessages(messages: readonly Message[]): readonly TracedMessage[] {
  return messages.map(({ role, content }) => ({
    role: role === 'model' ? 'assistant' : role,
    parts: content.flatMap(tracedPart),
  }));
}

function tracedPart(part: Part): object[] {
  if ('text' in part) return [{ type: 'text', content: part.text }];
  if ('reasoning' in part) return [{ type: 'reasoning', content: part.reasoning }];
  if ('toolRequest' in part) {
    const { name, ref, input } = part.toolRequest;
    return [{ type: 'tool_call', id: ref ?? null, name, arguments: input ?? null }];
  }
  if ('toolResponse' in part) {
    const { ref, output } = part.toolResponse;
    return [{ type: 'tool_call_response', id: ref ?? null, response: output ?? null }];
  }
  if ('media' in part) {
    const { url, contentType } = part.media;
    // The data of a file is not part of a trace.
    const uri = url.startsWith('data:') ? null : url;
    return [{ type: 'uri', mime_type: contentType ?? null, uri }];
  }
  return [];
}
