/** Something that is waited at until it is opened. */
export interface Gate {
  /** Resolves when it is opened. */
  readonly passed: Promise<void>;
  /** Resolves when a caller has reached the gate. */
  readonly reached: Promise<void>;
  /** Waits at it. */
  wait(): Promise<void>;
  /** Waits at it, and then gives this. */
  giving<Value>(value: Value): () => Promise<Value>;
  open(): void;
}

export function createGate(): Gate {
  const passed = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const wait = (): Promise<void> => {
    reached.resolve();
    return passed.promise;
  };
  return {
    passed: passed.promise,
    reached: reached.promise,
    wait,
    giving: (value) => async () => {
      await wait();
      return value;
    },
    open: () => passed.resolve(),
  };
}
