import { throwIfAborted } from '../../core/async/signal.ts';
import type {
  Fault,
  MaintenanceOptions,
  MaintenanceProgress,
  VerifyOptions,
} from '../contract/store.ts';

/** Called after each step, with how many items it did. */
export type Step = (items?: number, progress?: MaintenanceProgress) => void;

/**
 * Counts the items of a maintenance task: the returned function is called after each step. It reports the step, and throws when
 * the task is to stop, so that a task only ever stops between two steps.
 */
export function createSteps({ onProgress, signal }: MaintenanceOptions = {}): Step {
  throwIfAborted(signal);
  let done = 0;
  return (items = 1, progress = {}) => {
    done += items;
    if (items > 0) onProgress?.(done, progress);
    throwIfAborted(signal);
  };
}

/** Runs all steps at once, for a caller that holds a lock meanwhile. */
export function withoutPause<Result>(steps: Generator<number, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** The faults of a `verify`. */
export interface Faults {
  readonly found: readonly Fault[];
  /** Adds faults and reports each of them. */
  add(faults: readonly Fault[]): void;
}

/** Collects the faults of a `verify`, and reports each as soon as it is found. */
export function createFaults({ onFault }: VerifyOptions = {}): Faults {
  const found: Fault[] = [];
  return {
    found,
    add(faults) {
      for (const fault of faults) {
        found.push(fault);
        onFault?.(fault);
      }
    },
  };
}
