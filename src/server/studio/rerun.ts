import * as v from 'valibot';
import type { Agent } from '../../agent/spec/agent.ts';
import { defined } from '../../core/json/json.ts';
import { jsonObject } from '../../protocol/json-value.ts';
import type { RerunOptions, RerunRequest, RerunResult } from '../../replay/rerun.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { jsonResponse } from '../http/json-response.ts';
import { authorize, findAgent, type Router } from '../http/server-context.ts';
import { studioCaller } from './owners.ts';

const rerunRequest = v.object({
  agent: v.string(),
  snapshotId: v.string(),
  scope: v.optional(v.picklist(['turn', 'conversation']), 'turn'),
  tools: v.optional(v.picklist(['recorded', 'live']), 'recorded'),
  model: v.optional(v.string()),
  system: v.optional(v.string()),
  config: v.optional(jsonObject),
});

/** Runs turns again with another model, prompt or settings: the person at this machine decides what clients cannot. */
export type Rerun = (
  agent: Agent,
  request: RerunRequest,
  options: RerunOptions,
) => Promise<RerunResult>;

/** `POST /studio/rerun`: runs a turn or a conversation again, in a separate session. */
export function mountRerun(router: Router, rerun: Rerun): void {
  router.post('/studio/rerun', async (c) => {
    const body = await readBody(c, rerunRequest, 'rerun');
    const { agent: name, model, system, config, ...rest } = body;
    const agent = findAgent(c.get('server').app, name);
    const { snapshotId } = body;
    const caller = studioCaller(c);
    for (const operation of ['getSnapshot', 'fork', 'runTurn'] as const) {
      await authorize(c, { caller, agent, snapshotId, operation });
    }
    const changed = { ...rest, ...defined({ model, system, config }) };
    const options = { signal: c.req.raw.signal, ...ownerOf(caller) };
    return jsonResponse(await rerun(agent, changed, options));
  });
}
