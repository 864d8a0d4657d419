import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/json-response.ts';
import { openCall, type Router, type ServerContext } from '../http/server-context.ts';
import { pageQuery } from './request.ts';
import { snapshotParam } from './snapshots.ts';

/** What is being worked on, and what was given up. */
export function mountRuns(router: Router, serverContext: ServerContext): void {
  router.get(routes.listRuns.path, async (c) => {
    const { agent, options } = await openCall(serverContext, c, 'listRuns');
    return jsonResponse(await agent.listRuns({ ...options, ...pageQuery(c) }));
  });

  router.get(routes.listDeadRuns.path, async (c) => {
    const { agent, options } = await openCall(serverContext, c, 'listDeadRuns');
    return jsonResponse(await agent.listDeadRuns({ ...options, ...pageQuery(c) }));
  });

  router.post(routes.retryRun.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { agent, options } = await openCall(serverContext, c, 'retryRun', { snapshotId });
    return jsonResponse(await agent.retryRun(snapshotId, options));
  });
}
