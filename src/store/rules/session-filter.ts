import { WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason } from '../../protocol/turn.ts';
import type { SessionFilter } from '../contract/timeline-support.ts';
import { hasWords, queryWords } from './search-words.ts';

/** What a session is called and described by. */
export interface SearchedSession {
  /** The id. */
  readonly id: string;
  /** The title. */
  readonly title: string | undefined;
  /** The metadata. */
  readonly metadata: JsonObject | undefined;
  /** The words of its messages, as `searchTextOf` joins them; read only if nothing else matches. */
  readonly text: () => string;
}

/** What the filters of a list look at. */
export interface FilteredSession {
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
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `The query must be a text of at most ${maxQueryLength} characters.`,
  );
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
