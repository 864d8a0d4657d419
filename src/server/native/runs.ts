import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/json-response.ts';
import { openCall, type Router, type ServerRequest } from '../http/server-context.ts';
import { snapshotParam } from './snapshots.ts';

/** What is being worked on, and what was given up. */
export function mountRuns(router: Router, served: ServerRequest): void {
  router.get(routes.listRuns.path, async (c) => {
    const { agent, options } = await openCall(served, c, 'listRuns');
    return jsonResponse({ items: await agent.listRuns(options) });
  });

  router.get(routes.listDeadRuns.path, async (c) => {
    const { agent, options } = await openCall(served, c, 'listDeadRuns');
    return jsonResponse({ items: await agent.listDeadRuns(options) });
  });

  router.post(routes.retryRun.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { agent, options } = await openCall(served, c, 'retryRun', { snapshotId });
    return jsonResponse(await agent.retryRun(snapshotId, options));
  });
}
