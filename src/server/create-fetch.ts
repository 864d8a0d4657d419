import { checkKinds } from '../core/options.ts';
import { systemClock } from '../core/time/clock.ts';
import type { NodeBindings } from './http/connection.ts';
import type { HandlerOptions } from './http/handler-options.ts';
import { guardHooks } from './http/hooks.ts';
import { createIdentify } from './http/identify.ts';
import { createLifetime } from './http/lifetime.ts';
import { resolveLimits } from './http/limits.ts';
import { describeError } from './http/log.ts';
import { createPresence } from './http/presence.ts';
import type { ServedApp } from './http/served-app.ts';
import type { MountedProtocol, ServerContext } from './http/server-context.ts';
import { createSessionOf } from './http/session-of.ts';
import { createSlots } from './http/slots.ts';
import { createRouter } from './router.ts';
import type { MountStudio } from './studio/mount.ts';

/** Answers requests; `env` is what a Node adapter knows of the connection. */
export interface FetchHandler {
  (request: Request, env?: NodeBindings): Promise<Response>;
  /** Ends the open streams of a principal; gives their number. Revoke its credentials first. */
  disconnect(principal: string): number;
}

const optionKinds = {
  auth: ['function'],
  authorize: ['function'],
  basePath: ['text'],
  clientAddress: ['function'],
  cors: ['object'],
  limits: ['object'],
  protocols: ['list'],
  waitUntil: ['function'],
  log: ['function'],
} as const;

/** Everything that the dialects of one server share. */
export function createServerContext(
  app: ServedApp,
  given: HandlerOptions,
  protocols: readonly MountedProtocol[],
): ServerContext {
  checkKinds(given, optionKinds, 'the server');
  const options = { ...given, ...guardHooks(given, app) };
  const { clock = systemClock, log = () => {} } = options;
  const limits = resolveLimits(options.limits);
  // Without a log the app still prints failures.
  const unsubscribe =
    options.log &&
    app.subscribeToErrors?.((error, info) =>
      log({
        level: 'error',
        time: clock.now(),
        msg: 'failed',
        ...info,
        error: describeError(error),
      }),
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
    streams: createSlots('streams', {
      total: limits.streams,
      perPrincipal: limits.streamsPerPrincipal,
    }),
    turns: createSlots('turns', {
      total: Number.POSITIVE_INFINITY,
      perPrincipal: limits.turnsPerPrincipal,
    }),
  };
}

/** The fetch handler over what is shared. */
export function createFetch(serverContext: ServerContext, studio?: MountStudio): FetchHandler {
  const router = createRouter(serverContext, studio);
  const { disconnect } = serverContext.presence;
  const fetch = async (request: Request, env?: NodeBindings): Promise<Response> =>
    router.fetch(request, env ?? {});
  return Object.assign(fetch, { disconnect });
}
