/** A promise that may be left alone: a rejection that nobody looks at does not end the process. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
