import type { Message } from '../../protocol/message.ts';
import { withoutProviderMetadata } from '../../protocol/messages/metadata.ts';
import type { State } from '../../protocol/state.ts';
import type { Resume } from '../../protocol/turn.ts';

/** A client's message without provider options: only server code may set them. */
export function withoutOptions(message: Message): Message {
  const content = message.content.map(withoutProviderMetadata);
  const isClean = content.every((part, at) => part === message.content[at]);
  return withoutProviderMetadata(isClean ? message : { ...message, content });
}

/** A client's answers without the mark that they come from a deadline: only a worker may set it. */
export function withoutExpiry(resume: Resume): Resume {
  const { respond } = resume;
  if (respond === undefined) return resume;
  return {
    ...resume,
    respond: respond.map((part) => {
      if (part.metadata?.expired === undefined) return part;
      const { expired: _, ...metadata } = part.metadata;
      return { ...part, metadata };
    }),
  };
}

/**
 * An unsigned client-held state without provider options. This drops the provider's signatures of its reasoning, too: in an
 * unsigned state they could be forged.
 */
export function withoutProviderOptions(state: State): State {
  if (state.messages === undefined) return state;
  return { ...state, messages: state.messages.map(withoutOptions) };
}
