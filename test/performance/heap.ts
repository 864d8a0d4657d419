// Needs --expose-gc.

/** Bytes in the heap after a full collection. */
function live(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** Bytes that are dead and that only a full collection finds: they died so late that V8 took them for old. */
export function takenForOld(): number {
  globalThis.gc?.({ type: 'minor' });
  return process.memoryUsage().heapUsed - live();
}
