import { isWaymarkError } from '../core/error.ts';

const badCalls = new WeakSet<object>();

/** Marks the error of a tool call that the model got wrong: no such tool, or an input that does not fit. */
export function markBadCall<T>(error: T): T {
  if (isWaymarkError(error)) badCalls.add(error);
  return error;
}

/** Whether the model, and not the tool, is to blame. */
export function isBadCall(error: unknown): boolean {
  return typeof error === 'object' && error !== null && badCalls.has(error);
}
