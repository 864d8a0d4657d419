import { once } from '../../core/async/promises.ts';
import { invalid } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import { short } from '../http/answer.ts';
import type { OpenAiServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { checkSecret } from '../http/secret.ts';
import { checkOffered, type ServedApp } from '../http/served-app.ts';
import type { MountedProtocol } from '../http/server-context.ts';
import { openAiErrorResponse } from './errors.ts';
import { type OpenAiRoute, openAiPath, openAiRoutes } from './routes.ts';

/**
 * Offers the agents as models to clients of OpenAI's Responses and Chat Completions APIs, at `/openai/v1`.
 * @example handler(app, { protocols: [openAiProtocol()] })
 */
export function openAiProtocol(options: OpenAiServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'openai',
    // All refusals have OpenAI's shape, also those before the request is read.
    prepare(router) {
      router.use(`${openAiPath}/*`, async (c, next) => {
        c.set('renderError', openAiErrorResponse);
        await next();
      });
    },
    mount(router, serverContext) {
      checkOpenAiOptions(serverContext.app, options);
      // Loaded when a client comes, so that a server without it does not load it.
      const endpoints = once(async () =>
        (await import('./endpoints.ts')).createEndpoints(serverContext, options),
      );
      for (const [name, { method, path }] of Object.entries(openAiRoutes)) {
        router.on(method, `${openAiPath}${path}`, async (c) =>
          (await endpoints())(name as OpenAiRoute, c),
        );
      }
    },
  };
  return protocol;
}

const allowances = ['instructions', 'sampling', 'history', 'tools'];

/** Refuses options that cannot be meant, when the server starts. */
function checkOpenAiOptions(app: ServedApp, options: OpenAiServerOptions): void {
  checkOptions(options, { agents: true, allow: true, secret: true }, '`openai`');
  checkSecret(options.secret, 'openai.secret');
  checkOffered(app, 'openai', options.agents);
  const unknown = options.allow?.find((each) => !allowances.includes(each));
  if (unknown === undefined) return;
  throw invalid(
    `openai.allow has ${short(String(unknown))}. It can have ${allowances.join(', ')}.`,
  );
}
