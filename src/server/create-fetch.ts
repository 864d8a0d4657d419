import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { cors } from 'hono/cors';
import { invalid, WaymarkError } from '../core/error.ts';
import { isPerRequest } from '../core/platform.ts';
import { systemClock } from '../core/time.ts';
import { extractTrace, inSpan } from '../core/trace.ts';
import { mountGenkit, prepareGenkit } from './genkit/mount.ts';
import { addSafetyHeaders, errorResponse, short } from './http/answer.ts';
import { type Caller, createIdentify, createPresence, guardHooks } from './http/auth.ts';
import { addressOf, headersOf, type NodeBindings } from './http/connection.ts';
import type { HandlerOptions, ServerProtocol } from './http/handler-options.ts';
import { mountHealth } from './http/health.ts';
import { createSlots, resolveLimits } from './http/limits.ts';
import { describeError, type ServerLog } from './http/log.ts';
import { checkRequest } from './http/origin.ts';
import type { ServedApp } from './http/served-app.ts';
import {
  createLifetime,
  createSessionOf,
  logRequestFault,
  type MountedProtocol,
  type RequestContext,
  type Router,
  type ServerContext,
  type ServerEnv,
} from './http/server-context.ts';
import { mountNative, mountOpenApi } from './native/mount.ts';
import type { MountStudio } from './studio/mount.ts';
import { mountUiStream } from './ui-stream/mount.ts';
import { uiPaths } from './ui-stream/shapes.ts';

/** Answers requests; `env` is what a Node adapter knows of the connection. */
export interface FetchHandler {
  (request: Request, env?: NodeBindings): Promise<Response>;
  /** Ends the open streams of a principal; gives their number. Revoke its credentials first. */
  disconnect(principal: string): number;
}

export function createServerContext(
  app: ServedApp,
  given: HandlerOptions,
  protocols: readonly MountedProtocol[],
): ServerContext {
  const options = { ...given, ...guardHooks(given, app) };
  const { clock = systemClock } = options;
  const limits = resolveLimits(options.limits);
  const log: ServerLog = (level, msg, fields) =>
    options.log?.({ level, time: clock.now(), msg, ...fields });
  // Without a log the app still prints failures.
  const unsubscribe =
    options.log &&
    app.subscribeToErrors?.((error, info) =>
      log('error', 'failed', { ...info, error: describeError(error) }),
    );
  return {
    app,
    options,
    protocols,
    limits,
    clock,
    log,
    lifetime: createLifetime(clock),
    identify: createIdentify(options, { limits, clock }),
    presence: createPresence(options, clock),
    sessionOf: createSessionOf(),
    unsubscribe: unsubscribe ?? (() => {}),
    streams: createSlots('streams', limits.streamsPerPrincipal, limits.streams),
    turns: createSlots('turns', limits.turnsPerPrincipal),
  };
}

export function createFetch(serverContext: ServerContext, studio?: MountStudio): FetchHandler {
  const router = createRouter(serverContext, studio);
  const { disconnect } = serverContext.presence;
  const fetch = async (request: Request, env?: NodeBindings): Promise<Response> =>
    router.fetch(request, env ?? {});
  return Object.assign(fetch, { disconnect });
}

/** All protocols on one router, behind the checks that every request goes through. */
export function createRouter(serverContext: ServerContext, mountStudio?: MountStudio): Router {
  const { options, protocols } = serverContext;
  const router = new Hono<ServerEnv>().basePath(options.basePath ?? '');
  router.onError((error, c) => answerError(c, error));
  router.notFound((c) => answerError(c, unknownRoute(c)));

  router.use(observe(serverContext));
  prepareGenkit(router);
  for (const protocol of protocols) protocol.prepare?.(router);
  router.use((c, next) => {
    checkRequest(c, serverContext, !safeMethods.includes(c.req.raw.method));
    return next();
  });
  if (options.cors) router.use(corsOf(options.cors));
  mountHealth(router, serverContext);
  router.use((_, next) => {
    serverContext.lifetime.checkOpen();
    return next();
  });
  mountOpenApi(router, uiPaths);
  for (const protocol of protocols) protocol.mountPublic?.(router);
  mountStudio?.(router);
  router.use(identify(serverContext));

  mountNative(router);
  mountGenkit(router);
  mountUiStream(router);
  for (const protocol of protocols) protocol.mount(router, serverContext);
  return router;
}

// Each layer takes several promises for every request. One that only checks gives back what `next` returns.
type Middleware = (c: RequestContext, next: () => Promise<void>) => Promise<void>;

// A span and a line in the log for each request, and what every answer gets on its way out.
function observe(serverContext: ServerContext): Middleware {
  const { clock, log, options } = serverContext;
  // Workers compress what a handler answers, and would compress it twice.
  const compressed = options.compress === false || isPerRequest ? undefined : compress();
  return (c, next) => {
    const started = clock.now();
    const { method, path } = c.req;
    const shown = path.slice(0, 256);
    const logged: Record<string, unknown> = { method, path: shown };
    c.set('server', serverContext);
    c.set('logged', logged);
    return inSpan(
      `${method} ${path.split('/', 2)[1] ?? ''}`,
      {
        kind: 'server',
        attributes: () => ({ 'http.request.method': method, 'url.path': shown }),
        parent: extractTrace(headersOf(c)),
      },
      async (span) => {
        await next();
        const { res } = c;
        // A stream on a connection that this server owns is written already, with its headers.
        if (res !== c.env?.own?.answered) {
          await compressed?.(c, nothingMore);
          // Most answers have them already; those of the framework do not.
          if (!c.res.headers.has('x-frame-options')) addSafetyHeaders(c.res.headers);
        }
        const { status } = res;
        span.setAttributes({ 'http.response.status_code': status });
        if (status < 400 && isStudioLooking(c)) return;
        const level = status >= 500 ? 'error' : 'info';
        log(level, 'request', { ...logged, status, ms: clock.now() - started });
      },
    );
  };
}

async function nothingMore(): Promise<void> {}

// Studio asks every few seconds whether anything is new; such requests are not logged.
function isStudioLooking(c: RequestContext): boolean {
  return c.req.method === 'GET' && c.req.header('x-waymark-studio') !== undefined;
}

// Authenticates the caller, and refuses one that calls too often.
function identify(serverContext: ServerContext): Middleware {
  return async (c, next) => {
    const request = c.req.raw;
    const address = addressOf(serverContext.options, request, c.env);
    const identified = serverContext.identify(request, address);
    const caller: Caller = identified instanceof Promise ? await identified : identified;
    serverContext.pendingConnections?.know(c.env?.incoming?.socket);
    const owner = c.get('studioOwner');
    c.set('caller', owner === undefined ? caller : { principal: owner, ...caller });
    if (caller.principal !== undefined) c.get('logged').principal = caller.principal;
    return next();
  };
}

const safeMethods = ['GET', 'HEAD', 'OPTIONS'];

function corsOf({
  origins,
  credentials = false,
}: NonNullable<HandlerOptions['cors']>): ReturnType<typeof cors> {
  if (origins === true && credentials) {
    throw invalid(
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

async function answerError(c: RequestContext, error: unknown): Promise<Response> {
  logRequestFault(c, error);
  const render = c.get('renderError') ?? errorResponse;
  return render(error);
}

function unknownRoute(c: RequestContext): WaymarkError {
  const list = /\/openai\/v1\//.test(c.req.path)
    ? 'The routes are those of https://platform.openai.com/docs/api-reference/responses, and POST /chat/completions.'
    : 'GET /openapi.json lists what there is.';
  return new WaymarkError(
    'NOT_FOUND',
    `There is nothing at ${c.req.method} ${short(c.req.path)}. ${list}`,
  );
}

/** The protocols as the router needs them; refuses other objects, and a protocol that is there twice. */
export function checkProtocols(protocols: readonly ServerProtocol[]): readonly MountedProtocol[] {
  const names = new Set<string>();
  return protocols.map((protocol) => {
    if (!isMounted(protocol)) {
      throw invalid(
        '`protocols` contains something that is not a protocol. Give it what mcpProtocol(), a2aProtocol(), openAiProtocol() and aguiProtocol() of waymark/server return.',
      );
    }
    if (names.has(protocol.name)) {
      throw invalid(
        `The protocol ${short(protocol.name)} is given twice. Give it as an option or in \`protocols\`, once.`,
      );
    }
    names.add(protocol.name);
    return protocol;
  });
}

function isMounted(protocol: ServerProtocol): protocol is MountedProtocol {
  return typeof (protocol as Partial<MountedProtocol> | undefined)?.mount === 'function';
}
