import type { UsageQuery } from '../../api/agent-api.ts';
import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/json-response.ts';
import { openCall, type Router, type ServerContext } from '../http/server-context.ts';

/** What the caller has spent. */
export function mountUsage(router: Router, serverContext: ServerContext): void {
  router.get(routes.getUsage.path, async (c) => {
    const sessionId = c.req.query('session');
    const by = c.req.query('by');
    const since = c.req.query('since');
    const lookup = sessionId === undefined ? {} : { sessionId };
    const { agent, options } = await openCall(serverContext, c, 'getUsage', lookup);
    // The agent checks what the query says.
    const query = {
      ...lookup,
      ...(by !== undefined && { by }),
      ...(since !== undefined && { since }),
    };
    return jsonResponse(await agent.getUsage({ ...options, ...(query as UsageQuery) }));
  });
}
