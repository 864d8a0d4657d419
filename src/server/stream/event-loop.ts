/** Resolves when what is due in this turn of the event loop has been done. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => afterThisTurn(resolve));
}

/** Calls a function when what is due in this turn of the event loop has been done. */
export const afterThisTurn: (fn: () => void) => void =
  typeof setImmediate === 'function'
    ? (fn) => void setImmediate(fn)
    : (fn) => void setTimeout(fn, 0);
