import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../json-response.ts';
import { openCall, type Router, type Served } from '../served.ts';

/** `listRuns`: what is being worked on. */
export function mountRuns(router: Router, served: Served): void {
  router.get(routes.listRuns.path, async (c) => {
    const { agent, options } = await openCall(served, c, 'listRuns');
    return jsonResponse({ items: await agent.listRuns(options) });
  });
}
