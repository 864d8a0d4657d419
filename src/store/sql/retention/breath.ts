import type { MaintenanceOptions, MaintenanceProgress } from '../../contract/store.ts';
import { createSteps } from '../../rules/maintenance-steps.ts';

/** Lets everything else that waits for the thread run before the next step of a long task. */
export function breath(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** To be called after each step: reports it, stops at a signal, and lets turns run. */
export function stepsOf(
  options: MaintenanceOptions | undefined,
): (items?: number, progress?: MaintenanceProgress) => Promise<void> {
  const step = createSteps(options);
  return (items, progress) => {
    step(items, progress);
    return breath();
  };
}
