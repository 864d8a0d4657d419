import type { MaintenanceOptions, MaintenanceProgress } from '../../contract/store.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { createSteps } from '../../rules/maintenance-steps.ts';

/** To be called after each step: reports it, stops at a signal, and lets turns run. */
export function stepsOf(
  options: MaintenanceOptions | undefined,
): (items?: number, progress?: MaintenanceProgress) => Promise<void> {
  const step = createSteps(options);
  return (items, progress) => {
    step(items, progress);
    return betweenSteps();
  };
}
