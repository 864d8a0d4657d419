import type { SessionState } from '../../session/session-state.ts';
import { KeptRow } from '../memory/compact-row.ts';
import type { SnapshotRow } from '../memory/tables.ts';
import { dataLoss } from './disk.ts';
import type { Saved } from './rows.ts';

/** Loads the states of rows that do not have them in memory. */
export interface StateSource {
  /** The file that has the states. */
  readonly name: string;
  /** Gives each row that lacks it its state. */
  loadStates(): void;
}

const noArtifacts: readonly string[] = [];

/** A snapshot of the file store. Its state is unloaded when other sessions need the memory, and read again on demand. */
export class FileRow extends KeptRow implements SnapshotRow {
  declare stateHash: string;
  /** The hashes of its artifacts in the journal. */
  artifacts: readonly string[] = noArtifacts;
  /** The row as the journal has it. */
  saved: Saved<SnapshotRow> = {};
  #source: StateSource | undefined;
  #state: SessionState | undefined;

  constructor({ state, ...fields }: SnapshotRow) {
    super(fields);
    this.#state = state;
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

  /** Whether the journal has the state that the row has. */
  get hasSavedState(): boolean {
    return this.saved.stateHash === this.stateHash;
  }

  /** Notes that the journal has the row as it is. */
  settle(source: StateSource, artifacts: readonly string[]): void {
    this.#source = source;
    this.artifacts = artifacts;
    const { saved: _, ...fields } = this;
    this.saved = fields;
  }

  /** Frees the memory of a state that the journal has. */
  unload(): void {
    if (this.hasSavedState) this.#state = undefined;
  }
}
