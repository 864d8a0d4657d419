import type { Message } from '../../protocol/message.ts';
import { withoutProviderMetadata } from '../../protocol/messages/provider-metadata.ts';
import type { State } from '../../protocol/state.ts';

/** A client's message without provider options: only server code may set them. */
export function withoutOptions(message: Message): Message {
  const content = message.content.map(withoutProviderMetadata);
  const isClean = content.every((part, at) => part === message.content[at]);
  return withoutProviderMetadata(isClean ? message : { ...message, content });
}

/**
 * An unsigned client-held state without provider options. This drops the provider's signatures of its reasoning, too: in an
 * unsigned state they could be forged.
 */
export function withoutProviderOptions(state: State): State {
  if (state.messages === undefined) return state;
  return { ...state, messages: state.messages.map(withoutOptions) };
}
