import type { AguiServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import type {
  MountedProtocol,
  RequestContext,
  Router,
  ServerContext,
} from '../http/server-context.ts';
import type { Endpoint } from './endpoint.ts';
import { checkAguiOptions } from './offered-agents.ts';

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
      endpoint ??= load();
      return (await endpoint)[name](c);
    };
  router.get('/agui/openapi.json', async () =>
    jsonResponse((await import('./openapi.ts')).aguiDocument()),
  );
  router.post('/agui/:agent', answer('run'));
  router.get('/agui/:agent', answer('capabilities'));
  router.get('/agui/:agent/:thread', answer('connect'));
  router.post('/agui/:agent/:thread/cancel', answer('cancel'));
}
