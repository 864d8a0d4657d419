import { once } from '../../core/async/promises.ts';
import { WaymarkError } from '../../core/error.ts';
import { short } from '../http/answer.ts';
import type { AguiServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { checkOffered, hasStore } from '../http/served-app.ts';
import { type MountedProtocol, paramOf, type RequestContext } from '../http/server-context.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * Offers the agents to AG-UI clients such as CopilotKit, at `/agui/:agent`. The thread is the session.
 * @example handler(app, { protocols: [aguiProtocol()] })
 */
export function aguiProtocol(options: AguiServerOptions = {}): ServerProtocol {
  const { agents } = options;
  const protocol: MountedProtocol = {
    name: 'agui',
    mount(router, serverContext) {
      checkOffered(serverContext.app, 'agui', agents, (agent) =>
        hasStore(agent)
          ? undefined
          : 'which has no store. AG-UI clients hold no state that is signed: give the agent a store, or leave it out.',
      );
      // Loaded when a client comes, so that a server without AG-UI does not load it.
      const endpoint = once(async () => (await import('./endpoint.ts')).createEndpoint(options));
      const answer =
        (name: keyof Endpoint) =>
        async (c: RequestContext): Promise<Response> => {
          const agent = paramOf(c, 'agent');
          if (agents?.includes(agent) === false) {
            throw new WaymarkError('NOT_FOUND', `There is no agent ${short(agent)} here.`);
          }
          return (await endpoint())[name](c);
        };
      router.post('/agui/:agent', answer('run'));
      router.get('/agui/:agent', answer('capabilities'));
      router.get('/agui/:agent/:thread', answer('connect'));
      router.post('/agui/:agent/:thread/cancel', answer('cancel'));
    },
  };
  return protocol;
}
