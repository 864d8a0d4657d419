import { invalid } from '../core/error.ts';
import type { Message } from './message.ts';

/** Which messages of a state are read: the last ones, or the last ones before a position. */
export interface MessagePage {
  /** How many, from 1 to 1,000. */
  readonly last: number;
  /** Only messages before this position. To read the page before another one, pass its `messageRange.from`. */
  readonly before?: number;
}

/** Option of calls that read a state. */
export interface MessageOptions {
  /** Reads a page of the messages instead of all of them. */
  readonly messages?: MessagePage;
}

const maxPageSize = 1000;

/** Throws `INVALID_ARGUMENT` unless a page can be read. Stores, agents and clients all check pages here. */
export function checkMessagePage(page: MessagePage | undefined): void {
  if (page === undefined) return;
  const { last, before }: { last?: unknown; before?: unknown } = page ?? {};
  if (!Number.isInteger(last) || (last as number) < 1 || (last as number) > maxPageSize) {
    throw invalid(
      `messages.last must be a whole number from 1 to ${maxPageSize}, not ${String(last).slice(0, 64)}.`,
    );
  }
  if (before !== undefined && (!Number.isSafeInteger(before) || (before as number) < 0)) {
    throw invalid(
      `messages.before must be a position: a whole number from 0, not ${String(before).slice(0, 64)}.`,
    );
  }
}

/** The positions `[from, to)` of a page of so many messages. */
export function positionsOf(
  { last, before }: MessagePage,
  total: number,
): { readonly from: number; readonly to: number } {
  const to = Math.min(before ?? total, total);
  return { from: Math.max(0, to - last), to };
}

interface Paged {
  readonly state?: { readonly messages?: readonly Message[] | undefined } | undefined;
  readonly messageRange?: { readonly from: number; readonly total: number } | undefined;
}

/** The result of a read with a page of its messages, also where the store has read all of them. */
export function withPage<Read extends Paged>(read: Read, page: MessagePage | undefined): Read {
  if (page === undefined || read.state === undefined || read.messageRange !== undefined) {
    return read;
  }
  const { messages = [] } = read.state;
  const { from, to } = positionsOf(page, messages.length);
  return {
    ...read,
    state: { ...read.state, messages: messages.slice(from, to) },
    messageRange: { from, total: messages.length },
  };
}

/** Whether what was read has the last messages of its state. */
export function reachesEnd({ state, messageRange: range }: Paged): boolean {
  return range === undefined || range.from + (state?.messages?.length ?? 0) >= range.total;
}
