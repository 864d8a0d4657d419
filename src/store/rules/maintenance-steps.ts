import { throwIfAborted } from '../../core/async/signal.ts';
import { letOthersRun } from '../../core/platform.ts';
import type {
  Fault,
  MaintenanceOptions,
  MaintenanceProgress,
  VerifyOptions,
} from '../contract/store.ts';

/** Ends a step of a maintenance task that went through some items. */
export type Step = (items?: number, progress?: MaintenanceProgress) => Promise<void>;

/**
 * Counts the items of a maintenance task. The returned function is called after each step: it reports the step, stops the task at its signal,
 * so that a task only ever stops between two steps, and lets turns run.
 */
export function createSteps({ onProgress, signal }: MaintenanceOptions = {}): Step {
  throwIfAborted(signal);
  let done = 0;
  return async (items = 1, progress = {}) => {
    done += items;
    if (items > 0) onProgress?.(done, progress);
    throwIfAborted(signal);
    await letOthersRun();
  };
}

interface Faults {
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
