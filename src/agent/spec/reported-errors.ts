/** How many causes are followed; a chain may be circular. */
const maxCauses = 8;

// Each was created for one failure that was reported, so it is not reported again when it is rethrown.
const reportedOnce = new WeakSet<object>();

/** Marks an error as reported; only for errors that are created for one failure. */
export function markReported(error: object): void {
  reportedOnce.add(error);
}

/** Whether an error, or one of its causes, was reported. */
export function isReported(error: unknown): boolean {
  return causesOf(error).some(isMarked);
}

function isMarked(error: unknown): boolean {
  return typeof error === 'object' && error !== null && reportedOnce.has(error);
}

/** An error and its causes. */
export function causesOf(error: unknown): readonly unknown[] {
  const chain = [error];
  for (let last = error; last instanceof Error && chain.length < maxCauses; ) {
    if (last.cause === undefined) break;
    last = last.cause;
    chain.push(last);
  }
  return chain;
}
