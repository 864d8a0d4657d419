import { WaymarkError } from '../../../core/error.ts';
import { privateField } from '../../../core/private-field.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';

/** What a row may lack; a line that does not say it takes it away. */
export const optionalOfSnapshot = [
  'finishReason',
  'error',
  'edit',
  'usage',
  'totals',
  'label',
  'heartbeatAt',
  'ttl',
  'partialFrom',
] as const satisfies readonly (keyof SnapshotRow)[];
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

const statesOf = privateField<SessionRow, StatesById>();

/** Sets where the states of a session's snapshots are. */
export function keepStates(session: SessionRow, states: StatesById): void {
  statesOf.set(session, states);
}

/**
 * The same row as an object of a class. Once most objects of a literal have lived long, V8 makes the next ones old from the
 * start, and a copy for maintenance would stay in memory until a full garbage collection (decision 0092).
 */
export function youngRow<Row extends object>(row: Row): Row {
  return Object.assign(new YoungRow(), row) as Row & YoungRow;
}

class YoungRow {}

/** A row whose state is read from the journal on first access. */
export function withLazyState(row: Omit<SnapshotRow, 'state'>): SnapshotRow {
  return Object.defineProperty(youngRow(row), 'state', lazy) as SnapshotRow;
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

/** Where the states of a row's session are. */
export function loadedStates({ session }: SnapshotRow): StatesById {
  const states = statesOf.get(session);
  if (states !== undefined) return states;
  throw new WaymarkError('INTERNAL', `The states of session "${session.id}" are not loaded.`);
}
