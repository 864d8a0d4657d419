import { WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import { short } from '../http/errors.ts';
import type { OpenAiServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { checkSecret } from '../http/secret.ts';
import type { ServedApp } from '../http/served-app.ts';
import type { MountedProtocol, Router, ServerContext } from '../http/server-context.ts';
import { openAiErrorResponse } from './errors.ts';
import { type OpenAiRoute, openAiPath, openAiRoutes } from './routes.ts';

/**
 * Offers the agents as models to clients of the OpenAI Responses API, at `/openai/v1`.
 * @example handler(app, { protocols: [openAiProtocol()] })
 */
export function openAiProtocol(options: OpenAiServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'openai',
    prepare: prepareOpenAi,
    mount: (router, serverContext) => mountOpenAi(router, serverContext, options),
  };
  return protocol;
}

/** All refusals have OpenAI's shape, also those before the request is read. */
function prepareOpenAi(router: Router): void {
  router.use(`${openAiPath}/*`, async (c, next) => {
    c.set('renderError', openAiErrorResponse);
    await next();
  });
}

/** The agents as models of the OpenAI Responses API, at `/openai/v1`. */
function mountOpenAi(
  router: Router,
  serverContext: ServerContext,
  options: OpenAiServerOptions,
): void {
  checkOpenAiOptions(serverContext.app, options);
  // Loaded when a client comes, so that a server without it does not load it.
  let endpoints: Promise<import('./endpoints.ts').Endpoints> | undefined;
  const load = async (): Promise<import('./endpoints.ts').Endpoints> =>
    (await import('./endpoints.ts')).createEndpoints(serverContext, options);
  for (const [name, { method, path }] of Object.entries(openAiRoutes)) {
    router.on(method, `${openAiPath}${path}`, async (c) => {
      endpoints ??= load();
      return await (await endpoints)(name as OpenAiRoute, c);
    });
  }
}

const allowances = ['instructions', 'sampling', 'history', 'tools'];

/** Refuses options that cannot be meant, when the server starts. */
function checkOpenAiOptions(app: ServedApp, options: OpenAiServerOptions): void {
  checkOptions(options, { agents: true, allow: true, secret: true }, '`openai`');
  checkSecret(options.secret, 'openai.secret');
  const names = app.agents().map(({ name }) => name);
  const missing = options.agents?.find((name) => !names.includes(name));
  if (missing !== undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `openai.agents names ${short(missing)}, but the app has no such agent. Define it before the server starts.`,
    );
  }
  const unknown = options.allow?.find((each) => !allowances.includes(each));
  if (unknown === undefined) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `openai.allow has ${short(String(unknown))}. It can have ${allowances.join(', ')}.`,
  );
}
