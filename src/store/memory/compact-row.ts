import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import { RestingArtifacts, restArtifacts } from '../../session/compact-artifacts.ts';
import type { CompactMessage } from '../../session/compact-history.ts';
import { History } from '../../session/history.ts';
import { LazyState } from '../../session/lazy-state.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import type { SessionRow, SnapshotRow } from './tables.ts';

/**
 * A snapshot as the memory store keeps it. Most sessions in a store are idle, so the state is at rest, its hash is worked out
 * from the chain that rests with it, and times count from the session's own: V8 keeps a small whole number in the object, and
 * any other in 16 bytes elsewhere. What few snapshots have is not there in the others.
 */
export class CompactRow implements SnapshotRow {
  readonly id: string;
  readonly session: SessionRow;
  parent: SnapshotRow | undefined;
  index: number;
  turnIndex: number;
  event: SnapshotRow['event'];
  status: SnapshotRow['status'];
  finishReason?: NonNullable<SnapshotRow['finishReason']>;
  usage?: NonNullable<SnapshotRow['usage']>;
  declare error?: NonNullable<SnapshotRow['error']>;
  declare edit?: NonNullable<SnapshotRow['edit']>;
  declare totals?: NonNullable<SnapshotRow['totals']>;
  declare label?: string;
  declare heartbeatAt?: number;
  declare ttl?: number;
  declare partialFrom?: number;
  readonly #age: number;
  #updatedAge: number;
  #history: CompactMessage | undefined;
  #custom: Json | undefined;
  #artifacts: readonly Artifact[] | RestingArtifacts;

  constructor(row: SnapshotRow) {
    const { id, session, createdAt, updatedAt, state } = row;
    const { parent, index, turnIndex, event, status } = row;
    this.id = id;
    this.session = session;
    this.parent = parent;
    this.index = index;
    this.turnIndex = turnIndex;
    this.event = event;
    this.status = status;
    this.#age = small(createdAt - session.createdAt);
    this.#updatedAge = small(updatedAt - session.createdAt);
    this.#history = state.history.rest();
    this.#custom = state.custom;
    this.#artifacts = restArtifacts(state.artifacts);
    const own: Record<string, unknown> = this as never;
    for (const name of rare) if (row[name] !== undefined) own[name] = row[name];
  }

  get createdAt(): number {
    return this.session.createdAt + this.#age;
  }

  get updatedAt(): number {
    return this.session.createdAt + this.#updatedAge;
  }

  set updatedAt(time: number) {
    this.#updatedAge = small(time - this.session.createdAt);
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

  /** It is that of the state; there is nothing to keep. */
  set stateHash(_hash: string) {}
}

const rare = [
  'finishReason',
  'usage',
  'error',
  'edit',
  'totals',
  'label',
  'heartbeatAt',
  'ttl',
  'partialFrom',
] as const;

/** The same number, in the form in which V8 keeps it in the object: a difference of two large ones is not, however small. */
function small(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}
