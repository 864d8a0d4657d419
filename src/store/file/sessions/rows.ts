import { WaymarkError } from '../../../core/error.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';

/** What a row may lack; a line that does not say it takes it away. */
export const optionalOfSnapshot: readonly (keyof SnapshotRow)[] = [
  'finishReason',
  'error',
  'edit',
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
  'inbox',
  'forkedFrom',
  'startedBy',
];

/** The same row without what it may lack. */
export function emptied<Row>(row: Row, optional: readonly (keyof Row)[]): Row {
  for (const key of optional) delete row[key];
  return row;
}

/** The states of a session's snapshots, by snapshot id. */
interface StatesById {
  get(snapshotId: string): SessionState;
  set(snapshotId: string, state: SessionState): void;
}

const statesOf = new WeakMap<SessionRow, StatesById>();

/** Sets where the states of a session's snapshots are. */
export function keepStates(session: SessionRow, states: StatesById): void {
  statesOf.set(session, states);
}

/** A row whose state is read from the journal on first access. */
export function withLazyState(row: Omit<SnapshotRow, 'state'>): SnapshotRow {
  return Object.defineProperty(row, 'state', lazy) as SnapshotRow;
}

/** Makes the state of a row be read on first access. Such a row is slower to use, so it is done as late as possible. */
export function makeLazy(row: SnapshotRow): void {
  Object.defineProperty(row, 'state', lazy);
}

// The same functions for all rows: otherwise V8 would give each row its own hidden class.
const lazy: PropertyDescriptor & ThisType<SnapshotRow> = {
  get() {
    return loadedStates(this).get(this.id);
  },
  set(state: SessionState) {
    loadedStates(this).set(this.id, state);
  },
  enumerable: true,
};

function loadedStates({ session }: SnapshotRow): StatesById {
  const states = statesOf.get(session);
  if (states !== undefined) return states;
  throw new WaymarkError('INTERNAL', `The states of session "${session.id}" are not loaded.`);
}
