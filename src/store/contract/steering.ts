import type { Message } from '../../protocol/message.ts';

/** A message for a running turn. */
export interface SteeringMessage {
  /** Chosen by the sender: the same id twice is the same message. */
  readonly id: string;
  /** The message to add. */
  readonly message: Message;
  /** The run that it was sent to, if that run has ended without it. @default the run whose inbox has it */
  readonly runId?: string;
}

/** The most messages that the inbox of one run takes, and the most characters of JSON that they may have together. */
export const inboxLimits = { messages: 100, length: 1_000_000 } as const;
