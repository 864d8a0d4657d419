import * as v from 'valibot';
import { emptyState, type SessionState } from '../../../session/session-state.ts';
import type { SnapshotRow } from '../../memory/tables.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import type { ArtifactFiles } from './artifact-files.ts';
import { Journal } from './journal.ts';
import { journalLine } from './journal-line.ts';
import { makeLazy } from './rows.ts';
import { fromDelta, type StateDelta } from './state-delta.ts';

/** Options of {@link States}. */
export interface StatesOptions {
  readonly onUse: () => void;
  /** The state that those with no other below them are made from. @default the empty one */
  readonly first?: (() => SessionState) | undefined;
  /** The map that holds them. @default a new map */
  readonly states?: Map<string, SessionState> | undefined;
}

/**
 * The states of a journal's snapshots. They are at hand for sessions in use; for others they are unloaded, and read from the
 * journal again on demand.
 */
export class States {
  readonly #disk: Disk;
  readonly #name: string;
  readonly #artifacts: ArtifactFiles;
  readonly #onUse: () => void;
  readonly #first: () => SessionState;
  #states: Map<string, SessionState>;
  /** Rows that were made here and hold their states themselves. */
  readonly #holders = new Map<string, SnapshotRow>();
  #isWhole = true;

  constructor(
    disk: Disk,
    name: string,
    artifacts: ArtifactFiles,
    { onUse, first = () => emptyState, states = new Map() }: StatesOptions,
  ) {
    this.#disk = disk;
    this.#name = name;
    this.#artifacts = artifacts;
    this.#onUse = onUse;
    this.#first = first;
    this.#states = states;
  }

  get(id: string): SessionState {
    this.#onUse();
    if (!this.#isWhole && !this.#states.has(id)) this.#readAll();
    const state = this.#states.get(id);
    if (state === undefined) throw dataLoss(this.#name, `it lacks the state of snapshot "${id}"`);
    return state;
  }

  set(id: string, state: SessionState): void {
    this.#states.set(id, state);
  }

  /** Called for a row that was written. */
  keep(row: SnapshotRow, { isNew }: { readonly isNew: boolean }): void {
    this.#onUse();
    if (isNew) this.#holders.set(row.id, row);
    if (this.#holders.has(row.id)) this.#states.set(row.id, row.state);
  }

  /** Called when the rows are in use. */
  touch(): void {
    if (this.#isWhole) this.#onUse();
  }

  /** Called for a state that was read. */
  apply(id: string, delta: StateDelta): void {
    const holder = this.#holders.get(id);
    if (holder !== undefined) makeLazy(holder);
    this.#holders.delete(id);
    if (this.#isWhole) this.#put(this.#states, id, delta);
    else this.#states.delete(id);
  }

  delete(id: string): void {
    this.#states.delete(id);
    this.#holders.delete(id);
  }

  /** Unloads everything; nothing is lost. */
  cool(): void {
    for (const row of this.#holders.values()) makeLazy(row);
    this.#holders.clear();
    this.#states.clear();
    this.#isWhole = false;
  }

  /** Starts again with an empty journal. What was cool stays cool. */
  reset(): void {
    this.#states.clear();
    this.#holders.clear();
  }

  #readAll(): void {
    const states = new Map<string, SessionState>();
    const journal = new Journal(this.#disk, this.#name, {
      reset: () => states.clear(),
      head: () => {},
      line: (line) => {
        const { snapshots = [], dropped = [] } = v.parse(journalLine, line);
        for (const { id, state } of snapshots) {
          if (state !== undefined) this.#put(states, id, state);
        }
        for (const id of dropped) states.delete(id);
      },
    });
    journal.refresh();
    // States that are loaded already are shared with their users.
    for (const [id, state] of this.#states) states.set(id, state);
    this.#states = states;
    this.#isWhole = true;
  }

  #put(states: Map<string, SessionState>, id: string, delta: StateDelta): void {
    const base = delta.base === undefined ? this.#first() : states.get(delta.base);
    if (base === undefined) {
      throw dataLoss(this.#name, `snapshot "${id}" builds on one that is not in it`);
    }
    const readArtifacts = (hashes: readonly string[]) =>
      hashes.map((hash) => this.#artifacts.read(hash));
    states.set(id, fromDelta(delta, base, readArtifacts));
  }
}
