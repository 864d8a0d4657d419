import type { TurnSpanContent } from '../../agent/turn/telemetry.ts';
import { defined } from '../../core/json/json.ts';
import type { SpanRecord } from '../../core/trace.ts';
import { operations } from '../../core/trace-names.ts';
import { textOf } from '../../protocol/messages.ts';
import type { Cost, Input } from '../../protocol/turn.ts';

/** The content of a span for lists, so that they need not read all of it. */
export interface SpanFacts {
  /** For a model call. */
  readonly cost?: Cost;
  /** For a turn. */
  readonly turn?: Omit<TurnSpanContent, 'input'> & {
    /** The question, shortened. */
    readonly asked: string;
    /** Whether the input is recorded as a whole, so that it can be sent again. */
    readonly hasInput: boolean;
  };
}

/** A turn whose input is longer, in characters of JSON, is recorded without it. */
const maxInputLength = 1_000_000;

const maxAskedLength = 240;

export function isModelCall({ name }: Pick<SpanRecord, 'name'>): boolean {
  return name.startsWith(`${operations.chat} `);
}

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
  return defined({ content: text, facts: cost && { cost } });
}

function turnFacts(content: TurnSpanContent): { content?: string; facts: SpanFacts } {
  const { input, ...rest } = content;
  const text = JSON.stringify(content);
  const hasInput = text.length <= maxInputLength;
  const facts = { turn: { ...rest, asked: askedOf(input), hasInput } };
  return { facts, ...defined({ content: hasInput ? text : undefined }) };
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

/** The largest recorded model call, in characters of JSON. */
const maxContentLength = 1_000_000;

/** In a call that is too large, longer texts are cut. */
const maxTextLength = 4_000;

/** In a call that is still too large, only the last messages are kept. */
const maxMessages = 50;

/**
 * The request and answer of a model call, as JSON of a bounded size. The values of HTTP headers are left out: they may be
 * credentials.
 */
function toContentJson(content: unknown): string | undefined {
  const whole = toText(content);
  if (whole === undefined || whole.length <= maxContentLength) return whole;
  const cut = toText(content, cutText);
  if (cut === undefined || cut.length <= maxContentLength) return cut;
  const short = toText(withLastMessages(content), cutText);
  return short !== undefined && short.length <= maxContentLength ? short : undefined;
}

function toText(content: unknown, change = (value: unknown) => value): string | undefined {
  try {
    return JSON.stringify(content, (key, value) =>
      key === 'headers' && isRecord(value) ? withoutValues(value) : change(value),
    );
  } catch {
    // A setting of the app that is no JSON, such as a circular object.
    return undefined;
  }
}

function withoutValues(headers: object): object {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, '(not recorded)']));
}

function cutText(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= maxTextLength) return value;
  const left = value.length - maxTextLength;
  return `${value.slice(0, maxTextLength)}… (${left} more characters)`;
}

function withLastMessages(content: unknown): unknown {
  if (!isRecord(content) || !isRecord(content.request)) return content;
  const { messages, ...request } = content.request;
  if (!Array.isArray(messages)) return content;
  const omitted = Math.max(0, messages.length - maxMessages);
  return { ...content, omitted, request: { ...request, messages: messages.slice(omitted) } };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
