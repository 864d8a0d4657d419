import type { SessionState } from '../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from '../memory/tables.ts';
import { dataLoss } from './disk.ts';
import { type Saved, snapshotFields, toSaved } from './rows.ts';

/** Loads the states of rows that do not have them in memory. */
export interface StateSource {
  /** The file that has the states. */
  readonly name: string;
  /** Gives each row that lacks it its state. */
  loadStates(): void;
}

const noArtifacts: readonly string[] = [];

/** A snapshot of the file store. Its state is unloaded when other sessions need the memory, and read again on demand. */
export class FileRow implements SnapshotRow {
  readonly id: string;
  readonly session: SessionRow;
  declare parent: SnapshotRow | undefined;
  declare index: number;
  declare turnIndex: number;
  declare event: SnapshotRow['event'];
  declare status: SnapshotRow['status'];
  declare finishReason?: NonNullable<SnapshotRow['finishReason']>;
  declare error?: NonNullable<SnapshotRow['error']>;
  declare edit?: NonNullable<SnapshotRow['edit']>;
  declare usage?: NonNullable<SnapshotRow['usage']>;
  declare totals?: NonNullable<SnapshotRow['totals']>;
  declare label?: string;
  declare createdAt: number;
  declare updatedAt: number;
  declare heartbeatAt?: number;
  declare ttl?: number;
  declare stateHash: string;
  declare partialFrom?: number;
  /** The hashes of its artifacts in the journal. */
  artifacts: readonly string[] = noArtifacts;
  /** Its fields as the journal has them. */
  saved: Saved | undefined;
  #savedHash: string | undefined;
  #source: StateSource | undefined;
  #state: SessionState | undefined;

  constructor({ id, session, ...fields }: Omit<SnapshotRow, 'state'>) {
    this.id = id;
    this.session = session;
    // With the state, where there is one: the setter takes it.
    Object.assign(this, fields);
  }

  get state(): SessionState {
    if (this.#state === undefined) this.#source?.loadStates();
    if (this.#state !== undefined) return this.#state;
    throw dataLoss(this.#source?.name ?? '', `it lacks the state of snapshot "${this.id}"`);
  }

  set state(state: SessionState) {
    this.#state = state;
  }

  /** Whether its state is in memory. */
  get isLoaded(): boolean {
    return this.#state !== undefined;
  }

  /** Whether the journal has the row as it is. */
  get isSaved(): boolean {
    const { saved } = this;
    return saved !== undefined && snapshotFields.every((field, at) => this[field] === saved[at]);
  }

  /** Whether the journal has the state that the row has. */
  get hasSavedState(): boolean {
    return this.#savedHash === this.stateHash;
  }

  /** Notes that the journal has the row as it is. */
  settle(source: StateSource, artifacts: readonly string[]): void {
    this.#source = source;
    this.artifacts = artifacts;
    this.saved = toSaved<SnapshotRow>(this, snapshotFields);
    this.#savedHash = this.stateHash;
  }

  /** Frees the memory of a state that the journal has. */
  unload(): void {
    if (this.hasSavedState) this.#state = undefined;
  }
}
