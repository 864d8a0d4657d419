import { createAsyncContext } from '../platform.ts';

/** A named value that is seen by everything called from `run`, through awaits. */
export interface ContextKey<T> {
  readonly name: string;
  /** Calls a function inside which `get` gives this value. */
  run<R>(value: T, fn: () => R): R;
  /** The value of the innermost `run` around the caller. */
  get(): T | undefined;
}

// All keys share one async context, whose value is a chain: a `run` costs the same however many keys there are.
interface Frame {
  readonly key: object;
  readonly value: unknown;
  readonly outer: Frame | undefined;
}

const frames = createAsyncContext<Frame>();

/** A new context key; two keys are different also when they have the same name. */
export function createContextKey<T>(name: string): ContextKey<T> {
  const key: ContextKey<T> = {
    name,
    run: (value, fn) => frames.run({ key, value, outer: frames.get() }, fn),
    get() {
      for (let frame = frames.get(); frame; frame = frame.outer) {
        // Only `run` of this very key makes such a frame, with a T.
        if (frame.key === key) return frame.value as T;
      }
      return undefined;
    },
  };
  return key;
}
