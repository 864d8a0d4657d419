import { WaymarkError } from '../../core/error.ts';
import { short } from '../http/errors.ts';
import type { AguiServerOptions, ServerProtocol } from '../http/handler-options.ts';
import type { ServedApp } from '../http/served-app.ts';
import type {
  MountedProtocol,
  RequestContext,
  Router,
  ServerContext,
} from '../http/server-context.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * Offers the agents to AG-UI clients, at `/agui/:agent`.
 * @example handler(app, { protocols: [aguiProtocol()] })
 */
export function aguiProtocol(options: AguiServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'agui',
    mount: (router, serverContext) => mountAgui(router, serverContext, options),
  };
  return protocol;
}

/** The agents for AG-UI clients such as CopilotKit, at `/agui/:agent`; the thread is the session. */
function mountAgui(router: Router, serverContext: ServerContext, options: AguiServerOptions): void {
  checkAguiOptions(serverContext.app, options);
  // Loaded when a client comes, so that a server without AG-UI does not load it.
  let endpoint: Promise<Endpoint> | undefined;
  const load = async (): Promise<Endpoint> =>
    (await import('./endpoint.ts')).createEndpoint(serverContext, options);
  const answer =
    (name: keyof Endpoint) =>
    async (c: RequestContext): Promise<Response> => {
      checkOffered(options, c);
      endpoint ??= load();
      return (await endpoint)[name](c);
    };
  router.post('/agui/:agent', answer('run'));
  router.get('/agui/:agent', answer('capabilities'));
  router.get('/agui/:agent/:thread', answer('connect'));
  router.post('/agui/:agent/:thread/cancel', answer('cancel'));
}

/** Refuses options that cannot be meant, when the server starts. */
function checkAguiOptions(app: ServedApp, { agents = [] }: AguiServerOptions): void {
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
function checkOffered({ agents }: AguiServerOptions, c: RequestContext): void {
  const name = c.req.param('agent') ?? '';
  if (agents === undefined || agents.includes(name)) return;
  throw new WaymarkError('NOT_FOUND', `There is no agent ${short(name)} here.`);
}
