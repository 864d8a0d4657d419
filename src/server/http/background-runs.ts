import { WaymarkError } from '../../core/error.ts';
import type { Caller } from './auth.ts';
import type { ServerContext } from './server-context.ts';

/**
 * Refuses one more background run of a principal that has as many as it may. The store is asked, so that runs that other
 * processes work on, or that wait in a queue, count as well.
 */
export async function checkBackgroundRuns(
  { app, limits }: ServerContext,
  { principal }: Caller,
): Promise<void> {
  if (principal === undefined) return;
  const most = limits.backgroundRunsPerPrincipal;
  const agents = app.agents().filter(({ metadata }) => metadata.detachable);
  const runs = await Promise.all(agents.map((agent) => agent.listRuns({ owner: principal })));
  if (runs.flatMap(({ items }) => items).filter(({ mode }) => mode === 'detached').length < most)
    return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `You have ${most} background runs, which is the limit. Try again when one has ended.`,
    { details: { retryAfter: 10 } },
  );
}
