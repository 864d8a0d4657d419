import type { SnapshotEvent, SnapshotStatus } from '../../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../../protocol/turn.ts';
import type { RunMode, RunUsage, Spent, Totals } from '../../contract/store.ts';

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
  failed: statuses.indexOf('failed'),
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

type UsageList = readonly (number | null)[];

/** The counts in their order, and behind them, within a run that continues, the tool calls and the turns before. */
type StoredUsage = readonly (number | null | UsageList)[];

/** Usage as a short list: it stands in every snapshot. */
export function toUsage(usage: Usage | undefined, toolCalls?: number): string | null {
  if (usage === undefined) return null;
  const list: (number | null)[] = listOf(usage);
  if (toolCalls !== undefined) return JSON.stringify([...list, toolCalls]);
  while (list.at(-1) === null) list.pop();
  return JSON.stringify(list);
}

export function fromUsage(text: string | null): Usage | undefined {
  return text === null ? undefined : usageOf(JSON.parse(text) as UsageList);
}

/** What a run had used at a checkpoint. */
export function toRunUsage({ turn, before }: RunUsage): string {
  return JSON.stringify([...listOf(turn.usage), turn.toolCalls, listOf(before)]);
}

/** What a run had used, by the row of its checkpoint or of its last snapshot. */
export function fromRunUsage(text: string): { readonly turn: Spent; readonly before: Usage } {
  const list = JSON.parse(text) as StoredUsage;
  const [toolCalls = 0, before = []] = list.slice(usageFields.length) as [number?, UsageList?];
  return { turn: { usage: usageOf(list as UsageList), toolCalls }, before: usageOf(before) };
}

function listOf(usage: Usage): (number | null)[] {
  return usageFields.map((field) => usage[field] ?? null);
}

function usageOf(list: UsageList): Usage {
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
