import type { RunListOptions } from '../../api/agent-api.ts';
import type { Page } from '../../protocol/session.ts';
import { pageOf } from '../../store/rules/page.ts';

/** One page of a list of runs, oldest first. Stores list all of them: there are never many at once. */
export function runPage<Run extends { readonly snapshotId: string }>(
  runs: readonly Run[],
  timeOf: (run: Run) => string,
  { limit = Math.max(runs.length, 1), cursor }: RunListOptions,
): Page<Run> {
  const keyOf = (run: Run) => [Date.parse(timeOf(run)), run.snapshotId] as const;
  const sorted = runs
    .map((run) => ({ run, key: keyOf(run) }))
    .sort(({ key: [a, idA] }, { key: [b, idB] }) => a - b || (idA < idB ? -1 : 1))
    .map(({ run }) => run);
  return pageOf(sorted, keyOf, { limit, ...(cursor !== undefined && { cursor }) });
}
