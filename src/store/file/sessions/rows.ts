import { WaymarkError } from '../../../core/error.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';
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

/** Who keeps the states of a session's snapshots. */
const keepers = new WeakMap<SessionRow, States>();

/** Says who keeps the states of a session's snapshots. */
export function keepStates(session: SessionRow, states: States): void {
  keepers.set(session, states);
}

/** A row whose state is read when somebody looks at it. */
export function withLazyState(row: Omit<SnapshotRow, 'state'>): SnapshotRow {
  return Object.defineProperty(row, 'state', lazy) as SnapshotRow;
}

/** Makes the state of a row be read when somebody looks at it. Such a row is slower, so that it waits until it must be. */
export function makeLazy(row: SnapshotRow): void {
  Object.defineProperty(row, 'state', lazy);
}

// The same functions for all rows: with functions of its own, each row would have a hidden class of its own.
const lazy: PropertyDescriptor & ThisType<SnapshotRow> = {
  get() {
    return keeperOf(this).get(this.id);
  },
  set(state: SessionState) {
    keeperOf(this).set(this.id, state);
  },
  enumerable: true,
};

function keeperOf({ session }: SnapshotRow): States {
  const states = keepers.get(session);
  if (states !== undefined) return states;
  throw new WaymarkError('INTERNAL', `Nobody keeps the states of session "${session.id}".`);
}
