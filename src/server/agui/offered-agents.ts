import { WaymarkError } from '../../core/error.ts';
import { short } from '../http/errors.ts';
import type { AguiServerOptions } from '../http/handler-options.ts';
import type { ServedApp } from '../http/served-app.ts';
import type { RequestContext } from '../http/server-context.ts';

/** Refuses options that cannot be meant, when the server starts. */
export function checkAguiOptions(app: ServedApp, { agents = [] }: AguiServerOptions): void {
  for (const name of agents) {
    const agent = app.agents().find((each) => each.name === name);
    if (agent?.metadata.stateManagement === 'server') continue;
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      agent
        ? `agui.agents names ${short(name)}, which has no store. AG-UI clients hold no state that is signed: give the agent a store, or leave it out.`
        : `agui.agents names ${short(name)}, but the app has no such agent. Define it before the server starts.`,
    );
  }
}

/** Refuses a request for an agent that is not offered, as for one that does not exist. */
export function checkOffered({ agents }: AguiServerOptions, c: RequestContext): void {
  const name = c.req.param('agent') ?? '';
  if (agents === undefined || agents.includes(name)) return;
  throw new WaymarkError('NOT_FOUND', `There is no agent ${short(name)} here.`);
}
