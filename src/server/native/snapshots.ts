import { forkRequest, snapshotChange } from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { readBody } from '../body.ts';
import { jsonResponse } from '../json-response.ts';
import { notFound } from '../not-found.ts';
import { openCall, type Router, type Served, type ServerContext } from '../served.ts';

/** Snapshots: read, label, compare, go back, branch, stop. */
export function mountSnapshots(router: Router, served: Served): void {
  router.get(routes.getSnapshot.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const sessionId = c.req.query('sessionId');
    const lookup = { snapshotId, ...(sessionId !== undefined && { sessionId }) };
    const { agent, options } = await openCall(served, c, 'getSnapshot', lookup);
    const snapshot = await agent.getSnapshot(lookup, options);
    if (!snapshot) throw notFound('snapshot', snapshotId);
    return jsonResponse(snapshot);
  });

  router.patch(routes.label.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { label } = await readBody(c, snapshotChange, {
      what: 'change of a snapshot',
      ...served,
    });
    const { agent, options } = await openCall(served, c, 'label', { snapshotId });
    return jsonResponse(await agent.label(snapshotId, label, options));
  });

  router.get(routes.diff.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const other = c.req.param('other') ?? '';
    const { agent, options } = await openCall(served, c, 'diff', { snapshotId });
    if (other !== snapshotId) await openCall(served, c, 'diff', { snapshotId: other });
    return jsonResponse(await agent.diff(snapshotId, other, options));
  });

  router.post(routes.restore.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { agent, options } = await openCall(served, c, 'restore', { snapshotId });
    return jsonResponse(await agent.restore(snapshotId, options));
  });

  router.post(routes.fork.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { sessionId } = await readBody(c, forkRequest, { what: 'fork', ...served });
    const { agent, options } = await openCall(served, c, 'fork', { snapshotId, sessionId });
    const target = sessionId === undefined ? {} : { sessionId };
    return jsonResponse(await agent.fork(snapshotId, { ...options, ...target }));
  });

  router.post(routes.abort.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { agent, options } = await openCall(served, c, 'abort', { snapshotId });
    const status = await agent.abort(snapshotId, options);
    if (status === undefined) throw notFound('snapshot', snapshotId);
    return jsonResponse({ snapshotId, status });
  });
}

/** The snapshot id of the path. */
export function snapshotParam(c: ServerContext): string {
  return c.req.param('snapshot') ?? '';
}
