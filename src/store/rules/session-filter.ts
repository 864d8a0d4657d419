import { invalid } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason } from '../../protocol/turn.ts';
import type { SessionFilter } from '../contract/timeline-support.ts';

/** The texts of a session that a query can match. */
interface SearchedSession {
  /** The id. */
  readonly id: string;
  /** The title. */
  readonly title: string | undefined;
  /** The metadata. */
  readonly metadata: JsonObject | undefined;
  /** The words of its messages, as `searchTextOf` joins them; read only if nothing else matches. */
  readonly text: () => string;
}

/** The facts that the filters of a list compare. */
interface FilteredSession {
  /** Whether it has an open run. */
  readonly isRunning: boolean;
  /** Its head, if it has one. */
  readonly head: { readonly finishReason?: FinishReason; readonly updatedAt: number } | undefined;
  /** The listed snapshot with the highest index. */
  readonly last: { readonly status: SnapshotStatus; readonly updatedAt: number } | undefined;
  /** Whether one of its snapshots has a label. */
  readonly isLabelled: () => boolean;
}

const maxQueryLength = 1_000;

/** Refuses a query that is no text, or too long to be one. */
export function checkQuery(query: unknown): void {
  if (query === undefined || (typeof query === 'string' && query.length <= maxQueryLength)) return;
  throw invalid(`The query must be a text of at most ${maxQueryLength} characters.`);
}

/**
 * Whether a session is found by a query: its id, title or metadata contain it, or every word of the query begins a word of
 * its messages. Capitals do not matter.
 */
export function matchesQuery(query: string, session: SearchedSession): boolean {
  if (query === '') return true;
  const wanted = query.toLowerCase();
  const { id, title = '', metadata } = session;
  const texts = [id, title, metadata === undefined ? '' : JSON.stringify(metadata)];
  if (texts.some((text) => text.toLowerCase().includes(wanted))) return true;
  const words = queryWords(query);
  return words.length > 0 && hasWords(session.text(), words);
}

/** Whether a session passes the filters of a list, all of them. */
export function passesFilter(
  { failed = false, waiting = false, labelled = false }: SessionFilter,
  { isRunning, head, last, isLabelled }: FilteredSession,
): boolean {
  if (waiting && (isRunning || head?.finishReason !== 'interrupted')) return false;
  if (failed && (isRunning || last?.status !== 'failed')) return false;
  // A later turn has succeeded, although its state is not listed.
  if (failed && head !== undefined && last !== undefined && head.updatedAt > last.updatedAt)
    return false;
  return !labelled || isLabelled();
}

/** Number of different words of a session that can be found; the newest messages come first. */
const maxWords = 20_000;
/** Number of characters of a session that are read for them. */
const maxCharacters = 2_000_000;
/** A longer word is found by its beginning. */
const maxWordLength = 40;

// Scripts without spaces between words: each character counts as a word.
const unspaced = String.raw`\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}`;
const word = new RegExp(`[${unspaced}]|[[\\p{L}\\p{M}\\p{N}]--[${unspaced}]]+`, 'gv');

/** The different words of a text, in lower case. They consist of letters, marks and digits only. */
export function wordsOf(text: string): string[] {
  const found = text.normalize('NFKC').toLowerCase().match(word) ?? [];
  return [...new Set(found.map((each) => each.slice(0, maxWordLength)))];
}

/** The words that a query looks for in messages. A whole id is looked for among the ids only. */
export function queryWords(query: string): string[] {
  return uuid.test(query) ? [] : wordsOf(query);
}

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The different words in the text of messages, each after a space. */
export function searchTextOf(messages: readonly Message[]): string {
  const words = new Set<string>();
  let left = maxCharacters;
  for (let at = messages.length - 1; at >= 0 && left > 0 && words.size < maxWords; at--) {
    for (const part of messages[at]?.content ?? []) {
      if (!('text' in part)) continue;
      for (const each of wordsOf(part.text.slice(0, left))) words.add(each);
      left -= part.text.length;
    }
  }
  let text = '';
  for (const each of [...words].slice(0, maxWords)) text += ` ${each}`;
  return text;
}

/** Whether each of these words begins one of a search text. */
function hasWords(searchText: string, words: readonly string[]): boolean {
  return words.every((each) => searchText.includes(` ${each}`));
}
