import type { Json } from '../core/json/json.ts';
import type { Artifact } from '../protocol/state.ts';
import type { History } from './history.ts';
import type { SessionState } from './session-state.ts';

/** A state whose artifacts are read when they are first looked at: readers of many states need the artifacts of few. */
export class LazyState implements SessionState {
  readonly history: History;
  readonly custom: Json | undefined;
  declare readonly artifacts: readonly Artifact[];
  readonly #read: () => readonly Artifact[];
  #artifacts: readonly Artifact[] | undefined;

  constructor(history: History, custom: Json | undefined, read: () => readonly Artifact[]) {
    this.history = history;
    this.custom = custom;
    this.#read = read;
    // On the object itself, so that a copy of it has them. One getter for all: with a separate one, each object would get another
    // hidden class in V8.
    Object.defineProperty(this, 'artifacts', LazyState.#lazy);
  }

  static readonly #lazy: PropertyDescriptor & ThisType<LazyState> = {
    get() {
      this.#artifacts ??= this.#read();
      return this.#artifacts;
    },
    enumerable: true,
  };
}
