import type { Message, ToolRequest } from '../../protocol/message.ts';

export interface StoredTurn {
  readonly messages: readonly Message[];
  /** The snapshot at its end; absent if the agent's policy made none. */
  readonly snapshotId: string | undefined;
}

/** The messages of a state by turns. Without snapshots, a turn ends before a message that `begins` another one. */
export function turnsOf(
  stored: readonly Message[],
  begins: (message: Message, turn: readonly Message[]) => boolean = () => false,
): readonly StoredTurn[] {
  const turns: StoredTurn[] = [];
  let messages: Message[] = [];
  const end = (snapshotId?: string): void => {
    if (messages.length > 0) turns.push({ messages, snapshotId });
    messages = [];
  };
  for (const message of stored) {
    if (begins(message, messages)) end();
    messages.push(message);
    const snapshotId = message.metadata?.snapshotId;
    if (typeof snapshotId === 'string') end(snapshotId);
  }
  end();
  return turns;
}

/** The id under which clients know a tool call. */
export function toolCallId({ name, ref = name }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return ref;
}
