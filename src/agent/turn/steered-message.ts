import { isJsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';

/** Where a message came from that was added to a running turn. */
interface Steered {
  /** The id that the sender gave it. */
  readonly id: string;
  /** The run that it was sent to. */
  readonly runId: string;
}

/** The message as the state keeps it: a retry of the sender finds out whether it was taken. */
export function withSteeredId(message: Message, { id, runId }: Steered): Message {
  return { ...message, metadata: { ...message.metadata, steered: { id, runId } } };
}

/** Where a message came from; `undefined` if it was not added to a running turn. */
export function steeredBy(message: Message | undefined): Steered | undefined {
  const steered = message?.metadata?.steered;
  if (!isJsonObject(steered)) return undefined;
  const { id, runId } = steered;
  return typeof id === 'string' && typeof runId === 'string' ? { id, runId } : undefined;
}
