import { defined } from '../../../core/json/json.ts';
import type { SnapshotEvent, SnapshotStatus } from '../../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../../protocol/turn.ts';
import type { Totals } from '../../../protocol/usage.ts';
import type { RunMode, RunUsage, Spent } from '../../contract/store.ts';

// Words are stored as their place in these lists, which is why a list may only grow at its end.
const statuses = ['pending', 'succeeded', 'failed', 'aborted'] as const;
const events = ['turnEnd', 'toolIterationEnd', 'invocationEnd', 'detach', 'edit'] as const;
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
  edit: events.indexOf('edit'),
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

/** Fields that came later than the list: they stand behind the tool calls and the turns before, where earlier versions do not look. */
interface UsageExtras {
  readonly cacheWriteTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly cost?: Usage['cost'];
}

/** The counts in their order; then, within a run that continues, the tool calls and the turns before; then the extras. */
type StoredUsage = readonly (number | null | StoredUsage | UsageExtras)[];

/** Usage as a short list: it stands in every snapshot. */
export function toUsage(usage: Usage | undefined, toolCalls?: number): string | null {
  if (usage === undefined) return null;
  return JSON.stringify(shortened([...listOf(usage), toolCalls ?? null, null, extrasOf(usage)]));
}

export function fromUsage(text: string | null): Usage | undefined {
  return text === null ? undefined : usageOf(JSON.parse(text) as StoredUsage);
}

/** The usage of a run at a checkpoint. */
export function toRunUsage({ turn, before }: RunUsage): string {
  const earlier = shortened([...listOf(before), null, null, extrasOf(before)]);
  return JSON.stringify(
    shortened([...listOf(turn.usage), turn.toolCalls, earlier, extrasOf(turn.usage)]),
  );
}

/** The usage of a run, by the row of its checkpoint or of its last snapshot. */
export function fromRunUsage(text: string): { readonly turn: Spent; readonly before: Usage } {
  const list = JSON.parse(text) as StoredUsage;
  const [toolCalls, before] = list.slice(usageFields.length) as [number?, StoredUsage?];
  return {
    turn: { usage: usageOf(list), toolCalls: toolCalls ?? 0 },
    before: usageOf(before ?? []),
  };
}

function listOf(usage: Usage): (number | null)[] {
  return usageFields.map((field) => usage[field] ?? null);
}

function extrasOf({ cacheWriteTokens, expectedCachedTokens, cost }: Usage): UsageExtras | null {
  if (cacheWriteTokens === undefined && expectedCachedTokens === undefined && cost === undefined) {
    return null;
  }
  return defined({ cacheWriteTokens, expectedCachedTokens, cost });
}

function shortened(list: StoredUsage): StoredUsage {
  return list.slice(0, list.findLastIndex((each) => each !== null) + 1);
}

function usageOf(list: StoredUsage): Usage {
  const known = usageFields.map((field, place) => [field, (list as UsageList)[place]] as const);
  const counts = known.filter(([, value]) => value !== undefined && value !== null);
  return { ...Object.fromEntries(counts), ...(list[usageFields.length + 2] as UsageExtras | null) };
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
