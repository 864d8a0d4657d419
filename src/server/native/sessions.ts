import { internalsOf } from '../../agent/define/create-agent.ts';
import { listAllWaiting } from '../../agent/define/waiting.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { isWaymarkError } from '../../core/error.ts';
import { sessionChange } from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { notFound } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import {
  openAgentCall,
  openCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { checkFields, flagQuery, messageQuery, pageQuery } from './request.ts';

/** Sessions: list, read, label, erase, and their timelines. */
export function mountSessions(router: Router, serverContext: ServerContext): void {
  router.get(routes.listSessions.path, async (c) => {
    const { agent, options } = await openCall(serverContext, c, 'listSessions');
    const query = c.req.query('query');
    const filter = {
      ...(query !== undefined && { query }),
      failed: flagQuery(c, 'failed'),
      waiting: flagQuery(c, 'waiting'),
      labelled: flagQuery(c, 'labelled'),
    };
    return jsonResponse(await agent.listSessions({ ...options, ...pageQuery(c), ...filter }));
  });

  router.get(routes.listInterrupts.path, async (c) => {
    const { agent, options } = await openCall(serverContext, c, 'listInterrupts');
    return jsonResponse(await agent.listInterrupts({ ...options, ...pageQuery(c) }));
  });

  router.get(routes.listAllInterrupts.path, async (c) => {
    const allowed: Agent[] = [];
    for (const agent of serverContext.app.agents()) {
      if (await mayList(serverContext, c, agent)) allowed.push(agent);
    }
    const owned = ownerOf(c.get('caller'));
    return jsonResponse(
      await listAllWaiting(
        allowed.map((each) => internalsOf(each).spec),
        { ...owned, ...pageQuery(c) },
      ),
    );
  });

  router.get(routes.getSession.path, async (c) => {
    const sessionId = sessionParam(c);
    const { agent, options } = await openCall(serverContext, c, 'getSession', { sessionId });
    const session = await agent.getSession(sessionId, { ...options, ...messageQuery(c) });
    if (!session) throw notFound('session', sessionId);
    return jsonResponse(session);
  });

  router.patch(routes.updateSession.path, async (c) => {
    const sessionId = sessionParam(c);
    const { title, metadata } = await readBody(c, sessionChange, {
      what: 'change of a session',
      check: (body) => checkFields(body, sessionChange, 'a change of a session'),
      ...serverContext,
    });
    const { agent, options } = await openCall(serverContext, c, 'updateSession', { sessionId });
    const change = {
      ...(title !== undefined && { title }),
      ...(metadata !== undefined && { metadata }),
    };
    return jsonResponse(await agent.updateSession(sessionId, change, options));
  });

  router.delete(routes.deleteSession.path, async (c) => {
    const sessionId = sessionParam(c);
    const { agent, options } = await openCall(serverContext, c, 'deleteSession', { sessionId });
    if (!(await agent.deleteSession(sessionId, options))) throw notFound('session', sessionId);
    return new Response(null, { status: 204 });
  });

  router.get(routes.getHead.path, async (c) => {
    const sessionId = sessionParam(c);
    const { agent, options } = await openCall(serverContext, c, 'getHead', { sessionId });
    const snapshot = await agent.getSnapshot({ sessionId }, { ...options, ...messageQuery(c) });
    if (!snapshot) throw notFound('session', sessionId);
    return jsonResponse(snapshot);
  });

  router.get(routes.listSnapshots.path, async (c) => {
    const sessionId = sessionParam(c);
    const { agent, options } = await openCall(serverContext, c, 'listSnapshots', { sessionId });
    const page = await agent.listSnapshots(sessionId, {
      ...options,
      ...pageQuery(c),
      includeOrphaned: flagQuery(c, 'includeOrphaned'),
      newestFirst: flagQuery(c, 'newestFirst'),
    });
    // An empty page may be that of a session without snapshots, or of none.
    if (page.items.length === 0 && !(await agent.getSession(sessionId, { ...options, ...least }))) {
      throw notFound('session', sessionId);
    }
    return jsonResponse(page);
  });
}

// Whether it is there; its messages are not needed.
const least = { messages: { last: 1 } };

function sessionParam(c: RequestContext): string {
  return c.req.param('session') ?? '';
}

// Agents that this caller may not list are left out.
async function mayList(
  serverContext: ServerContext,
  c: RequestContext,
  agent: Agent,
): Promise<boolean> {
  try {
    await openAgentCall(serverContext, c, { agent, operation: 'listInterrupts' });
    return true;
  } catch (error) {
    const refusals: readonly string[] = ['PERMISSION_DENIED', 'NOT_FOUND'];
    if (isWaymarkError(error) && refusals.includes(error.status)) return false;
    throw error;
  }
}
