import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import { RestingArtifacts, restArtifacts } from '../../session/compact-artifacts.ts';
import type { CompactMessage } from '../../session/compact-history.ts';
import { History } from '../../session/history.ts';
import { LazyState } from '../../session/lazy-state.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from './tables.ts';

/** A snapshot as the memory store keeps it. Most sessions are idle, so its state is at rest and its hash is computed on demand. */
export class CompactRow implements SnapshotRow {
  readonly id: string;
  readonly session: SessionRow;
  parent: SnapshotRow | undefined;
  index: number;
  turnIndex: number;
  event: SnapshotRow['event'];
  status: SnapshotRow['status'];
  readonly createdAt: number;
  updatedAt: number;
  declare finishReason?: NonNullable<SnapshotRow['finishReason']>;
  declare usage?: NonNullable<SnapshotRow['usage']>;
  declare error?: NonNullable<SnapshotRow['error']>;
  declare edit?: NonNullable<SnapshotRow['edit']>;
  declare totals?: NonNullable<SnapshotRow['totals']>;
  declare label?: string;
  declare heartbeatAt?: number;
  declare ttl?: number;
  declare partialFrom?: number;
  #history: CompactMessage | undefined;
  #custom: Json | undefined;
  #artifacts: readonly Artifact[] | RestingArtifacts;

  constructor({ state, stateHash: _, ...row }: SnapshotRow) {
    this.id = row.id;
    this.session = row.session;
    this.parent = row.parent;
    this.index = row.index;
    this.turnIndex = row.turnIndex;
    this.event = row.event;
    this.status = row.status;
    this.createdAt = row.createdAt;
    this.updatedAt = row.updatedAt;
    Object.assign(this, row);
    this.#history = state.history.rest();
    this.#custom = state.custom;
    this.#artifacts = restArtifacts(state.artifacts);
  }

  get state(): SessionState {
    const history = History.wake(this.#history);
    const artifacts = this.#artifacts;
    if (!(artifacts instanceof RestingArtifacts)) {
      return { history, custom: this.#custom, artifacts };
    }
    return new LazyState(history, this.#custom, () => artifacts.wake());
  }

  set state({ history, custom, artifacts }: SessionState) {
    this.#history = history.rest();
    this.#custom = custom;
    this.#artifacts = restArtifacts(artifacts);
  }

  get stateHash(): string {
    return hashState(this.state);
  }

  /** Does nothing: the hash is that of the state. */
  set stateHash(_hash: string) {}
}
