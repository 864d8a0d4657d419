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

/** How many items are gone through between two pauses. */
const batch = 1000;

/** Items, with `undefined` for a pause among many. */
export function* pausing<Item>(items: Iterable<Item>): Generator<Item | undefined, void> {
  let count = 0;
  for (const item of items) {
    yield item;
    if (++count % batch === 0) yield undefined;
  }
}
