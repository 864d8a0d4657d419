import type { Agent } from '../../agent/spec/agent.ts';
import { jsonResponse } from '../http/json-response.ts';
import { checkCall, openAgentCall, type RequestContext } from '../http/server-context.ts';
import type { OpenAiServer } from './openai-server.ts';

/** `GET /models`: the agents. */
export async function listModels(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const { serverContext } = openai;
  const caller = c.get('caller');
  await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
  const data = openai.agents().map((agent) => toModel(openai, agent));
  return jsonResponse({ object: 'list', data });
}

/** `GET /models/:model`. */
export async function getModel(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const agent = openai.agent(c.req.param('model') ?? '');
  await openAgentCall(openai.serverContext, c, { agent, operation: 'getAgent' });
  return jsonResponse(toModel(openai, agent));
}

function toModel({ startedAt }: OpenAiServer, { name }: Agent): object {
  return { id: name, object: 'model', created: startedAt, owned_by: 'waymark' };
}
