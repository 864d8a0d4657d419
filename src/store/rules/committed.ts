import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Committed, StateBase } from '../contract/store.ts';

/** What a commit gave, with its snapshot described on demand, which no turn needs. */
export class CommittedTurn implements Committed {
  readonly base: StateBase;
  readonly #describe: () => Snapshot;
  #snapshot: Snapshot | undefined;

  constructor(base: StateBase, describe: () => Snapshot) {
    this.base = base;
    this.#describe = describe;
  }

  get snapshot(): Snapshot {
    this.#snapshot ??= this.#describe();
    return this.#snapshot;
  }
}
