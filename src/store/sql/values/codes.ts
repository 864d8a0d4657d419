import type { SnapshotEvent, SnapshotStatus } from '../../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../../protocol/turn.ts';
import type { RunMode, Totals } from '../../../session/store.ts';

// Words are stored as their place in these lists, which is why a list may only grow at its end.
const statuses = ['pending', 'succeeded', 'failed', 'aborted'] as const;
const events = ['turnEnd', 'toolIterationEnd', 'invocationEnd', 'detach'] as const;
const modes = ['attached', 'accepted', 'detached'] as const;
const finishReasons = [
  'stop',
  'length',
  'blocked',
  'interrupted',
  'other',
  'unknown',
  'aborted',
  'detached',
  'failed',
] as const;

/** A status that is written; `expired` never is. */
export type StoredStatus = Exclude<SnapshotStatus, 'expired'>;

/** The numbers that statements name. */
export const code = {
  pending: statuses.indexOf('pending'),
  succeeded: statuses.indexOf('succeeded'),
  aborted: statuses.indexOf('aborted'),
  turnEnd: events.indexOf('turnEnd'),
  toolIterationEnd: events.indexOf('toolIterationEnd'),
  detach: events.indexOf('detach'),
  attached: modes.indexOf('attached'),
  accepted: modes.indexOf('accepted'),
  detached: modes.indexOf('detached'),
  interrupted: finishReasons.indexOf('interrupted'),
  finishAborted: finishReasons.indexOf('aborted'),
} as const;

export const toStatus = (word: StoredStatus): number => statuses.indexOf(word);
export const fromStatus = (number: number): StoredStatus => at(statuses, number);
export const toEvent = (word: SnapshotEvent): number => events.indexOf(word);
export const fromEvent = (number: number): SnapshotEvent => at(events, number);
export const toMode = (word: RunMode): number => modes.indexOf(word);
export const fromMode = (number: number): RunMode => at(modes, number);
export const toFinish = (word: FinishReason | undefined): number | null =>
  word === undefined ? null : finishReasons.indexOf(word);
export const fromFinish = (number: number | null): FinishReason | undefined =>
  number === null ? undefined : at(finishReasons, number);

const usageFields = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
] as const;

/** Usage as a short list: it stands in every snapshot. */
export function toUsage(usage: Usage | undefined): string | null {
  if (usage === undefined) return null;
  const list = usageFields.map((field) => usage[field] ?? null);
  while (list.at(-1) === null) list.pop();
  return JSON.stringify(list);
}

export function fromUsage(text: string | null): Usage | undefined {
  if (text === null) return undefined;
  const list = JSON.parse(text) as readonly (number | null)[];
  const known = usageFields.map((field, place) => [field, list[place] ?? undefined] as const);
  return Object.fromEntries(known.filter(([, value]) => value !== undefined));
}

export function toTotals(totals: Totals | undefined): string | null {
  return totals === undefined ? null : JSON.stringify([totals.tokens, totals.toolCalls]);
}

export function fromTotals(text: string | null): Totals | undefined {
  if (text === null) return undefined;
  const [tokens, toolCalls] = JSON.parse(text) as [number, number];
  return { tokens, toolCalls };
}

function at<Word extends string>(words: readonly Word[], number: number): Word {
  const word = words[number];
  if (word === undefined) throw new TypeError(`There is no word for the stored number ${number}.`);
  return word;
}
