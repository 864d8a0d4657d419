/** Marks a promise as handled, so that its rejection does not end the process. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** A promise for what needs no waiting: one for all, since a promise for each chunk would cost as much as the rest of it. */
export const settled: Promise<void> = Promise.resolve();
