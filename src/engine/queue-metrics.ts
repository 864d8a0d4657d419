import { observeGauges } from '../core/metrics.ts';

/** Reports queue depth and age to OpenTelemetry, if a meter is set up. Returns a function that stops it. */
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
