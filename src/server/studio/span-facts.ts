import type { TurnSpanContent } from '../../agent/turn/telemetry.ts';
import type { SpanRecord } from '../../core/trace.ts';
import { operations } from '../../core/trace-names.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Cost, Input } from '../../protocol/turn.ts';
import { toContentJson } from './call-content.ts';

/** What lists show of the content of a span, so that they need not read all of it. */
export interface SpanFacts {
  /** Of a model call. */
  readonly cost?: Cost;
  /** Of a turn. */
  readonly turn?: Omit<TurnSpanContent, 'input'> & {
    /** What was asked, shortened. */
    readonly asked: string;
    /** Whether the input is recorded as a whole, so that it can be sent again. */
    readonly hasInput: boolean;
  };
}

/** A turn whose input is longer, in characters of JSON, is recorded without it. */
const maxInputLength = 1_000_000;

const maxAskedLength = 240;

/** Whether a span is a model call. */
export function isModelCall({ name }: Pick<SpanRecord, 'name'>): boolean {
  return name.startsWith(`${operations.chat} `);
}

/** Whether a span is a turn. */
export function isTurn({ name }: Pick<SpanRecord, 'name'>): boolean {
  return name.startsWith('turn ');
}

/** The content of a span as JSON of a bounded size, and what lists show of it. */
export function toStored(
  span: Pick<SpanRecord, 'name'>,
  content: unknown,
): { readonly content?: string; readonly facts?: SpanFacts } {
  if (content === undefined) return {};
  if (isTurn(span)) return turnFacts(content as TurnSpanContent);
  const text = toContentJson(content);
  const { response } = content as { response?: { usage?: { cost?: Cost } } };
  const cost = response?.usage?.cost;
  return { ...(text !== undefined && { content: text }), ...(cost && { facts: { cost } }) };
}

function turnFacts(content: TurnSpanContent): { content?: string; facts: SpanFacts } {
  const { input, ...rest } = content;
  const text = JSON.stringify(content);
  const hasInput = text.length <= maxInputLength;
  return {
    ...(hasInput && { content: text }),
    facts: { turn: { ...rest, asked: askedOf(input), hasInput } },
  };
}

function askedOf({ message, resume }: Input): string {
  if (message) {
    const text = textOf(message).trim();
    return text === '' ? '(attachment)' : text.slice(0, maxAskedLength);
  }
  const answers = [
    ...(resume?.respond ?? []).map(({ toolResponse }) => toolResponse.name),
    ...(resume?.restart ?? []).map(({ toolRequest }) => toolRequest.name),
  ];
  return answers.length > 0 ? `Answer to ${answers.join(', ')}` : '(no message)';
}
