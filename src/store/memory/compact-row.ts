import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import { RestingArtifacts, restArtifacts } from '../../session/compact-artifacts.ts';
import type { CompactMessage } from '../../session/compact-history.ts';
import { History } from '../../session/history.ts';
import { LazyState } from '../../session/lazy-state.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import type { SnapshotRow } from './tables.ts';

type KeptFields = Omit<SnapshotRow, 'state' | 'stateHash'>;

/** The fields of a row that are kept as they are. */
export const KeptRow: new (fields: KeptFields) => KeptFields = class {
  constructor(fields: KeptFields) {
    Object.assign(this, fields);
  }
} as never;

/** A snapshot as the memory store keeps it. Most sessions are idle, so its state is at rest and its hash is computed on demand. */
export class CompactRow extends KeptRow implements SnapshotRow {
  #history: CompactMessage | undefined;
  #custom: Json | undefined;
  #artifacts: readonly Artifact[] | RestingArtifacts = [];

  constructor({ state, stateHash: _, ...fields }: SnapshotRow) {
    super(fields);
    this.state = state;
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
