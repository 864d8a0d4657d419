import type { SessionState } from '../../../session/session-state.ts';
import { small } from '../../memory/compact-row.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';
import { loadedStates, optionalOfSnapshot } from '../sessions/rows.ts';
import type { RowFields, SavedRow } from '../sessions/session-tree.ts';

const noArtifacts: readonly string[] = [];

/**
 * A snapshot of a copy, with its state and with what the journal has of it, in one object: while V8 moves what a copy has
 * grown by, turns wait. Times count from the session's own, because V8 keeps a small whole number in the object, and any other
 * elsewhere.
 */
export class CopiedRow implements SnapshotRow, SavedRow {
  readonly id: string;
  readonly session: SessionRow;
  parent: SnapshotRow | undefined;
  index: number;
  turnIndex: number;
  event: SnapshotRow['event'];
  status: SnapshotRow['status'];
  stateHash: string;
  artifacts = noArtifacts;
  finishReason?: NonNullable<SnapshotRow['finishReason']>;
  totals?: NonNullable<SnapshotRow['totals']>;
  declare usage?: NonNullable<SnapshotRow['usage']>;
  declare error?: NonNullable<SnapshotRow['error']>;
  declare edit?: NonNullable<SnapshotRow['edit']>;
  declare label?: string;
  declare heartbeatAt?: number;
  declare ttl?: number;
  declare partialFrom?: number;
  #age: number;
  #updatedAge: number;
  #state: SessionState | undefined;

  constructor(id: string, session: SessionRow, fields: RowFields, state: SessionState | undefined) {
    this.id = id;
    this.session = session;
    this.parent = fields.parent;
    this.index = fields.index;
    this.turnIndex = fields.turnIndex;
    this.event = fields.event;
    this.status = fields.status;
    this.stateHash = fields.stateHash;
    this.#age = small(fields.createdAt - session.createdAt);
    this.#updatedAge = small(fields.updatedAt - session.createdAt);
    this.#state = state;
    this.#setOptional(fields);
  }

  /** Makes it what a later line says. */
  change(fields: RowFields): void {
    const { parent, index, turnIndex, event, status, stateHash } = fields;
    Object.assign(this, { parent, index, turnIndex, event, status, stateHash });
    this.#age = small(fields.createdAt - this.session.createdAt);
    this.#updatedAge = small(fields.updatedAt - this.session.createdAt);
    this.#setOptional(fields);
  }

  #setOptional(fields: RowFields): void {
    const own: Record<string, unknown> = this as never;
    for (const name of optionalOfSnapshot) {
      if (own[name] !== fields[name]) own[name] = fields[name];
    }
  }

  /** As what the journal has, it is a row itself. */
  get row(): SnapshotRow {
    return this;
  }

  /** Nothing is written of a copy, so that there is nothing to compare it with. */
  get was(): undefined {
    return undefined;
  }

  get createdAt(): number {
    return this.session.createdAt + this.#age;
  }

  get updatedAt(): number {
    return this.session.createdAt + this.#updatedAge;
  }

  /** Its state, if the journal has one. */
  get ownState(): SessionState | undefined {
    return this.#state;
  }

  get state(): SessionState {
    return this.#state ?? loadedStates(this).get(this.id);
  }

  set state(state: SessionState) {
    this.#state = state;
  }
}

/** The states of a copy by snapshot id: each is in its row. */
export class CopiedStates extends Map<string, SessionState> {
  readonly #rows: ReadonlyMap<string, CopiedRow>;
  #next: SessionState | undefined;

  constructor(rows: ReadonlyMap<string, CopiedRow>) {
    super();
    this.#rows = rows;
  }

  override get(id: string): SessionState | undefined {
    return this.#rows.get(id)?.ownState;
  }

  override set(id: string, state: SessionState): this {
    const row = this.#rows.get(id);
    if (row === undefined) this.#next = state;
    else row.state = state;
    return this;
  }

  /** The state that was set last, for a row that was not there yet. */
  take(): SessionState | undefined {
    const state = this.#next;
    this.#next = undefined;
    return state;
  }
}
