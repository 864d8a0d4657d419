import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { cors } from 'hono/cors';
import { WaymarkError } from '../core/error.ts';
import { extractTrace, inSpan } from '../core/trace.ts';
import { mountGenkit, prepareGenkit } from './genkit/mount.ts';
import { addressOf } from './http/address.ts';
import type { Caller } from './http/auth.ts';
import { headerOf, headersOf } from './http/connection.ts';
import { errorResponse } from './http/error-response.ts';
import { logFault } from './http/fault.ts';
import { checkNotForwarded } from './http/forwarded.ts';
import type { CorsOptions } from './http/handler-options.ts';
import { mountHealth } from './http/health.ts';
import { short } from './http/not-found.ts';
import { checkLoopbackHost, checkOrigin, isPlainLoopback } from './http/origin.ts';
import { addSafetyHeaders } from './http/safety-headers.ts';
import type { RequestContext, Router, ServerContext, ServerEnv } from './http/server-context.ts';
import { mountNative } from './native/mount.ts';
import { mountOpenApi } from './native/openapi.ts';
import type { MountStudio } from './studio/mount.ts';
import { mountUiStream } from './ui-stream/mount.ts';

/** All dialects on one router, behind the checks that every request goes through. */
export function createRouter(serverContext: ServerContext, mountStudio?: MountStudio): Router {
  const { options, protocols } = serverContext;
  const router = new Hono<ServerEnv>().basePath(options.basePath ?? '');
  router.onError((error, c) => answerError(serverContext, c, error));
  router.notFound((c) => answerError(serverContext, c, unknownRoute(c)));

  router.use(observe(serverContext));
  router.use(addHeaders);
  prepareGenkit(router);
  for (const protocol of protocols) protocol.prepare?.(router, serverContext);
  router.use(checkRequest(serverContext));
  if (options.cors) router.use(corsOf(options.cors));
  if (options.compress !== false) router.use(compress());
  mountHealth(router, serverContext);
  router.use(checkOpen(serverContext));
  mountOpenApi(router);
  for (const protocol of protocols) protocol.mountPublic?.(router, serverContext);
  mountStudio?.(router, serverContext);
  router.use(identify(serverContext));

  mountNative(router, serverContext);
  mountGenkit(router, serverContext);
  mountUiStream(router, serverContext);
  for (const protocol of protocols) protocol.mount(router, serverContext);
  return router;
}

type Middleware = (c: RequestContext, next: () => Promise<void>) => Promise<Response | undefined>;

// A span and a line in the log for each request.
function observe({ clock, log }: ServerContext): Middleware {
  return async (c, next) => {
    const started = clock.now();
    const { method, path } = c.req;
    c.set('logged', { method, path: path.slice(0, 256) });
    await inSpan(
      `${method} ${path.split('/')[1] ?? ''}`,
      {
        kind: 'server',
        attributes: { 'http.request.method': method, 'url.path': path.slice(0, 256) },
        parent: extractTrace(headersOf(c)),
      },
      async (span) => {
        await next();
        span.setAttributes({ 'http.response.status_code': c.res.status });
      },
    );
    const { status } = c.res;
    if (status < 400 && isStudioLooking(c)) return undefined;
    const ms = clock.now() - started;
    const level = status >= 500 ? 'error' : 'info';
    log({ level, time: clock.now(), msg: 'request', ...c.get('logged'), status, ms });
    return undefined;
  };
}

// The studio asks every few seconds whether anything is new, which is no news in itself.
function isStudioLooking(c: RequestContext): boolean {
  return c.req.method === 'GET' && c.req.header('x-waymark-studio') !== undefined;
}

// Checks that do not depend on the caller.
function checkRequest({ options, limits }: ServerContext): Middleware {
  return async (c, next) => {
    const request = c.req.raw;
    if (request.url.length > limits.urlLength) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `The URL is over the limit of ${limits.urlLength} characters.`,
      );
    }
    if (!options.auth) {
      if (!isPlainLoopback(headerOf(c, 'host'))) checkLoopbackHost(request);
      checkNotForwarded(headersOf(c));
    }
    if (!isSafe(request.method) && headerOf(c, 'origin') !== undefined) {
      checkOrigin(request, { allowed: options.cors?.origins, localOnly: !options.auth });
    }
    await next();
    return undefined;
  };
}

function checkOpen({ lifetime }: ServerContext): Middleware {
  return async (_, next) => {
    lifetime.checkOpen();
    await next();
    return undefined;
  };
}

// Most answers have them already; those of the framework do not.
async function addHeaders(c: RequestContext, next: () => Promise<void>): Promise<undefined> {
  await next();
  // Written already, with its headers.
  if (c.res === c.env?.own?.answered) return;
  const { headers } = c.res;
  if (!headers.has('x-frame-options')) addSafetyHeaders(headers);
}

// Authenticates the caller, and refuses one that calls too often.
function identify(serverContext: ServerContext): Middleware {
  return async (c, next) => {
    const request = c.req.raw;
    const caller = await serverContext.identify(
      request,
      addressOf(serverContext.options, request, c.env),
    );
    serverContext.pendingConnections?.know(c.env?.incoming?.socket);
    c.set('caller', withStudioOwner(caller, c.get('studioOwner')));
    if (caller.principal !== undefined) c.get('logged').principal = caller.principal;
    await next();
    return undefined;
  };
}

function withStudioOwner(caller: Caller, owner: string | undefined): Caller {
  return owner === undefined || caller.principal !== undefined
    ? caller
    : { ...caller, principal: owner };
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

function corsOf({ origins, credentials = false }: CorsOptions): ReturnType<typeof cors> {
  if (origins === true && credentials) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'cors: name the origins that may send credentials. Not every origin may send them.',
    );
  }
  return cors({
    origin: origins === true ? '*' : [...origins],
    credentials,
    allowMethods: ['GET', 'POST', 'PATCH', 'DELETE'],
    exposeHeaders: [
      'retry-after',
      'x-vercel-ai-ui-message-stream',
      'mcp-session-id',
      'www-authenticate',
    ],
    maxAge: 600,
  });
}

async function answerError(
  serverContext: ServerContext,
  c: RequestContext,
  error: unknown,
): Promise<Response> {
  logFault(serverContext, error, c.get('logged'));
  const render = c.get('renderError') ?? errorResponse;
  return render(error);
}

function unknownRoute(c: RequestContext): WaymarkError {
  const [, openAi = ''] = /^(.*\/openai\/v1)\//.exec(c.req.path) ?? [];
  const isChat = openAi !== '' && c.req.path.endsWith('/chat/completions');
  const instead = isChat ? ` Use the Responses API: POST ${openAi}/responses.` : '';
  return new WaymarkError(
    'NOT_FOUND',
    `There is nothing at ${c.req.method} ${short(c.req.path)}.${instead} GET ${openAi}/openapi.json lists what there is.`,
  );
}
