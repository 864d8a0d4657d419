import type { Message, ToolRequestPart, ToolResponsePart } from '../../../src/client/index.ts';
import { requestKey, textOf } from '../../../src/protocol/messages.ts';

/** A message and its position in the conversation. */
export interface PlacedMessage {
  readonly message: Message;
  readonly index: number;
  /** The messages behind it that answer its tool requests; of an interrupt they belong to a later turn. */
  readonly answers: readonly Message[];
}

/** The messages of one turn, with the snapshot it led to once it is saved. */
export interface TurnGroup {
  readonly snapshotId: string | undefined;
  readonly messages: readonly PlacedMessage[];
}

/**
 * A conversation, or its part from a position on, turn by turn: the last message of each names its snapshot. Turns as before
 * stay the same objects.
 */
export function toTurns(
  messages: readonly Message[],
  before: readonly TurnGroup[] = [],
  from = 0,
): readonly TurnGroup[] {
  const turns: TurnGroup[] = [];
  const known = new Map(before.map((turn) => [turn.messages[0]?.index, turn]));
  let open: PlacedMessage[] = [];
  const close = (snapshotId: string | undefined): void => {
    const turn = { snapshotId, messages: open };
    const old = known.get(open[0]?.index ?? -1);
    turns.push(old && isSameTurn(old, turn) ? old : turn);
    open = [];
  };
  for (const [index, message] of messages.entries()) {
    open.push({ message, index: from + index, answers: answersTo(messages, index) });
    const snapshotId = message.metadata?.snapshotId;
    if (typeof snapshotId === 'string') close(snapshotId);
  }
  if (open.length > 0) close(undefined);
  return turns;
}

const none: readonly Message[] = [];

function answersTo(messages: readonly Message[], index: number): readonly Message[] {
  if (messages[index]?.role !== 'model' || messages[index + 1]?.role !== 'tool') return none;
  let end = index + 1;
  while (messages[end]?.role === 'tool') end++;
  return messages.slice(index + 1, end);
}

function isSameTurn(a: TurnGroup, b: TurnGroup): boolean {
  return (
    a.snapshotId === b.snapshotId &&
    a.messages.length === b.messages.length &&
    a.messages.every(({ message, index, answers }, at) => {
      const other = b.messages[at];
      return (
        message === other?.message &&
        index === other.index &&
        answers.length === other.answers.length &&
        answers.every((answer, place) => answer === other.answers[place])
      );
    })
  );
}

/** The messages of the turn that is not saved yet. */
export function openTurn(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(({ metadata }) => typeof metadata?.snapshotId === 'string');
  return messages.slice(last + 1);
}

/** A short summary of a turn: its message or its answers. */
export function titleOf(messages: readonly Message[]): string | undefined {
  const said = messages.find(({ role, content }) => role === 'user' && content.length > 0);
  if (said) {
    const text = textOf(said).trim().split('\n', 1)[0] ?? '';
    return text === '' ? 'attachment' : text.slice(0, 120);
  }
  const answered = messages
    .filter(({ role }) => role === 'tool')
    .flatMap(({ content }) => content)
    .find((part) => 'toolResponse' in part);
  if (answered && 'toolResponse' in answered) return `Answered ${answered.toolResponse.name}`;
  return undefined;
}

/** The titles of all turns of a conversation, by snapshot. */
export function titlesOf(messages: readonly Message[]): ReadonlyMap<string, string> {
  const titles = new Map<string, string>();
  for (const turn of toTurns(messages)) {
    const title = titleOf(turn.messages.map(({ message }) => message));
    if (turn.snapshotId !== undefined && title !== undefined) titles.set(turn.snapshotId, title);
  }
  return titles;
}

/** The answer to a tool request, if it has come. */
export function responseTo(
  { toolRequest }: ToolRequestPart,
  answers: readonly Message[],
): ToolResponsePart | undefined {
  for (const { content } of answers) {
    for (const part of content) {
      if (!('toolResponse' in part)) continue;
      if (requestKey(part.toolResponse) === requestKey(toolRequest)) return part;
    }
  }
  return undefined;
}
