import type { JsonObject } from '../../core/json/json.ts';
import { providerMetadataKey } from '../../generate/language-model/prompt.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';

interface WithMetadata {
  readonly metadata?: JsonObject | undefined;
}

/** A client's message without provider options: only server code may set them. */
export function withoutOptions(message: Message): Message {
  const content = message.content.map(strip);
  const isClean = content.every((part, at) => part === message.content[at]);
  return strip(isClean ? message : { ...message, content });
}

/**
 * An unsigned client-held state without provider options. This drops the provider's signatures of its reasoning, too: in an
 * unsigned state they could be forged.
 */
export function withoutProviderOptions(state: State): State {
  if (state.messages === undefined) return state;
  return { ...state, messages: state.messages.map(withoutOptions) };
}

function strip<Value extends WithMetadata>(value: Value): Value {
  if (value.metadata?.[providerMetadataKey] === undefined) return value;
  const { [providerMetadataKey]: _, ...metadata } = value.metadata;
  return { ...value, metadata };
}
