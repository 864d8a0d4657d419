import { defined } from '../core/json/json.ts';
import type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { pendingInterrupts, requestKey } from '../protocol/messages.ts';
import { recordOf } from '../protocol/tool-record.ts';
import type { Input, Resume } from '../protocol/turn.ts';

export interface RecordedInput {
  readonly input: Input;
  /** The messages after the input. For a resumed turn, its first one has the answers. */
  readonly answer: readonly Message[];
}

/** Reads the input of a turn off the messages that it added; a text says why there is none. */
export function inputOf(
  before: readonly Message[],
  added: readonly Message[],
  initial: readonly Message[],
): RecordedInput | string {
  const at = userMessageAt(before, added, initial);
  const message = added[at];
  if (message !== undefined) {
    const answer = added.slice(at + 1);
    return answer.some(({ role }) => role === 'user')
      ? 'Messages were added while the turn ran; a replay cannot add them at the same moment.'
      : { input: { message: withoutSnapshot(message) }, answer };
  }
  const [first] = added;
  const interrupts = pendingInterrupts(before);
  if (first?.role === 'tool' && interrupts.length > 0) {
    return { input: { resume: resumeOf(interrupts, first) }, answer: added };
  }
  return 'The snapshot does not tell what the turn was given.';
}

/** The place of the message that started the turn; -1 for a turn that answered interrupts. */
function userMessageAt(
  before: readonly Message[],
  added: readonly Message[],
  initial: readonly Message[],
): number {
  if (before.length > 0) {
    // A plain message after an interrupt declines it first.
    const at = added[0]?.role === 'tool' ? 1 : 0;
    return added[at]?.role === 'user' ? at : -1;
  }
  const start = initial.length;
  if (added[start]?.role === 'user') return start;
  return added.findLastIndex(({ role }) => role === 'user');
}

function withoutSnapshot(message: Message): Message {
  const { snapshotId: _, ...metadata } = message.metadata ?? {};
  const { metadata: __, ...bare } = message;
  return Object.keys(metadata).length === 0 ? bare : { ...bare, metadata };
}

/** The answers to interrupts, as they were given: to the same request, or else to one of the same tool. */
export function resumeOf(interrupts: readonly ToolRequestPart[], answers: Message): Resume {
  const respond: ToolResponsePart[] = [];
  const restart: ToolRequestPart[] = [];
  const unused = answers.content.filter(isAnswer);
  for (const request of interrupts) {
    const key = requestKey(request.toolRequest);
    const same = unused.findIndex((part) => requestKey(namedBy(part)) === key);
    const { name } = request.toolRequest;
    const at = same >= 0 ? same : unused.findIndex((part) => namedBy(part).name === name);
    const [answer] = at < 0 ? [] : unused.splice(at, 1);
    if (answer === undefined) continue;
    const { resumed, input } = recordOf(answer) ?? {};
    // A call that was interrupted again had been restarted.
    const again = restartOf(
      request,
      resumed ?? ('toolRequest' in answer ? true : undefined),
      input,
    );
    if (again !== undefined) restart.push(again);
    else if ('toolResponse' in answer) respond.push(responseOf(answer, request));
  }
  return defined({
    respond: respond.length > 0 ? respond : undefined,
    restart: restart.length > 0 ? restart : undefined,
  });
}

function isAnswer(part: Part): part is ToolResponsePart | ToolRequestPart {
  return 'toolResponse' in part || 'toolRequest' in part;
}

function namedBy(part: ToolResponsePart | ToolRequestPart): { name: string; ref?: string } {
  const { name, ref } = 'toolResponse' in part ? part.toolResponse : part.toolRequest;
  return defined({ name, ref });
}

type Value = ToolRequestPart['toolRequest']['input'];

function restartOf(
  { toolRequest }: ToolRequestPart,
  resumed: Value,
  edited: Value,
): ToolRequestPart | undefined {
  if (resumed === undefined) return undefined;
  if (edited === undefined) return { toolRequest, metadata: { resumed } };
  const replacedInput = toolRequest.input ?? null;
  return { toolRequest: { ...toolRequest, input: edited }, metadata: { resumed, replacedInput } };
}

const reasonMark = 'The reason: ';

function responseOf(
  { toolResponse, metadata }: ToolResponsePart,
  request: ToolRequestPart,
): ToolResponsePart {
  const { error } = metadata ?? {};
  const names = namedBy(request);
  const reason =
    typeof error === 'object' && error !== null && 'reason' in error ? error.reason : undefined;
  if (reason === 'expired')
    return { toolResponse: names, metadata: { declined: true, expired: true } };
  if (reason !== 'declined') return { toolResponse: { ...toolResponse, ...names } };
  const text = String(toolResponse.output ?? '');
  const at = text.indexOf(reasonMark);
  const declined = at < 0 ? true : text.slice(at + reasonMark.length);
  return { toolResponse: names, metadata: { declined } };
}
