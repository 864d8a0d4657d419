import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Lookup } from '../../protocol/ids.ts';
import { routes } from '../../protocol/routes.ts';
import { notFound } from '../http/not-found.ts';
import {
  openCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { artifactBytes, storedBytes } from './artifact-bytes.ts';
import { bytesResponse } from './bytes-response.ts';

// The messages are not needed.
const least = { messages: { last: 1 } };

/** Artifacts as bytes, of a session's head or of any snapshot. */
export function mountArtifacts(router: Router, serverContext: ServerContext): void {
  const answer = async (
    c: RequestContext,
    operation: 'getArtifact' | 'getSnapshotArtifact',
    lookup: Lookup,
  ): Promise<Response> => {
    const name = c.req.param('artifact') ?? '';
    const { agent, options } = await openCall(serverContext, c, operation, lookup);
    const snapshot = await agent.getSnapshot(lookup, { ...options, ...least });
    const found = snapshot?.state?.artifacts?.find((artifact) => artifact.name === name);
    if (snapshot === undefined || found === undefined) throw notFound('artifact', name);
    const { openArtifact } = internalsOf(agent);
    const file = await openArtifact(snapshot, found, options.owner);
    const bytes = file === undefined ? artifactBytes(found) : storedBytes(found, file);
    return bytesResponse(c.req.raw, bytes, name);
  };
  router.get(routes.getArtifact.path, (c) =>
    answer(c, 'getArtifact', { sessionId: c.req.param('session') ?? '' }),
  );
  router.get(routes.getSnapshotArtifact.path, (c) =>
    answer(c, 'getSnapshotArtifact', { snapshotId: c.req.param('snapshot') ?? '' }),
  );
}
