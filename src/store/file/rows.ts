import type { SessionRow, SnapshotRow } from '../../session/memory-store/tables.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { States } from './states.ts';

/** What a row may lack; a line that does not say it takes it away. */
export const optionalOfSnapshot: readonly (keyof SnapshotRow)[] = [
  'finishReason',
  'error',
  'usage',
  'totals',
  'label',
  'heartbeatAt',
  'ttl',
  'partialFrom',
];
export const optionalOfSession: readonly (keyof SessionRow)[] = [
  'title',
  'metadata',
  'forkedFrom',
  'startedBy',
];

/** The same row without what it may lack. */
export function emptied<Row>(row: Row, optional: readonly (keyof Row)[]): Row {
  for (const key of optional) delete row[key];
  return row;
}

/** A row whose state is read when somebody looks at it. */
export function withLazyState(row: Omit<SnapshotRow, 'state'>, states: States): SnapshotRow {
  return Object.defineProperty(row, 'state', lazily(row.id, states)) as SnapshotRow;
}

/** Gives the state of a row that has just been made into the keeping of its family. */
export function bindState(row: SnapshotRow, states: States): void {
  if (Object.getOwnPropertyDescriptor(row, 'state')?.get !== undefined) return;
  states.set(row.id, row.state);
  Object.defineProperty(row, 'state', lazily(row.id, states));
}

function lazily(id: string, states: States): PropertyDescriptor {
  return {
    get: () => states.get(id),
    set: (state: SessionState) => states.set(id, state),
    enumerable: true,
  };
}
