import { observeGauges } from '../core/metrics.ts';

/** Tells OpenTelemetry, where somebody measures, how much waits and for how long. Returns the way to stop. */
export function observeQueue(
  depth: () => Promise<{ readonly waiting: number; readonly oldestMs: number }>,
): () => void {
  return observeGauges(
    {
      'waymark.queue.waiting': { unit: '{run}', description: 'Runs that wait for a worker' },
      'waymark.queue.oldest': { unit: 'ms', description: 'How long the oldest of them has waited' },
    },
    async () => {
      const { waiting, oldestMs } = await depth();
      return { 'waymark.queue.waiting': waiting, 'waymark.queue.oldest': oldestMs };
    },
  );
}
