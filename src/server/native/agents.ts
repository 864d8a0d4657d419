import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/json-response.ts';
import { checkCall, openCall, type Router, type ServerContext } from '../http/server-context.ts';

/** Which agents there are, and what each can do. */
export function mountAgents(router: Router, serverContext: ServerContext): void {
  router.get(routes.listAgents.path, async (c) => {
    const caller = c.get('caller');
    await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
    return jsonResponse({ items: serverContext.app.agents().map(describeAgent) });
  });

  router.get(routes.getAgent.path, async (c) => {
    const { agent } = await openCall(serverContext, c, 'getAgent');
    return jsonResponse({ ...describeAgent(agent), ...(await insideOf(agent)) });
  });
}

// What a prompt renders may need what only a call has; then nothing is said.
async function insideOf(agent: Agent): Promise<object> {
  try {
    return (await internalsOf(agent).spec.describe?.()) ?? {};
  } catch {
    return {};
  }
}

function describeAgent({ name, description, metadata }: Agent): object {
  return { name, ...(description !== undefined && { description }), metadata };
}
