import { privateField } from '../../core/private-field.ts';
import type { SessionFilter } from '../contract/store.ts';
import { searchTextOf } from '../rules/search-words.ts';
import { matchesQuery, passesFilter } from '../rules/session-filter.ts';
import { toSessionInfo } from './reading.ts';
import type { SessionRow, SnapshotRow } from './tables.ts';

/** Whether a session is one of those that a list is narrowed to. */
export function isWanted(session: SessionRow, filter: SessionFilter, now: number): boolean {
  const { id, title, metadata, head, listed } = session;
  const isRunning = toSessionInfo(session, now).running !== undefined;
  const isLabelled = (): boolean => listed.some(({ label }) => label !== undefined);
  if (!passesFilter(filter, { isRunning, head, last: listed.at(-1), isLabelled })) return false;
  const text = (): string => (head === undefined ? '' : textOf(head));
  return matchesQuery(filter.query ?? '', { id, title, metadata, text });
}

// A search reads each state once; the next one only those that are new.
const texts = privateField<SnapshotRow, { readonly stateHash: string; readonly text: string }>();

function textOf(head: SnapshotRow): string {
  const { stateHash } = head;
  const known = texts.get(head);
  if (known?.stateHash === stateHash) return known.text;
  const text = searchTextOf(head.state.history.toArray());
  texts.set(head, { stateHash, text });
  return text;
}
