import { systemClock } from '../../core/time/clock.ts';
import type { NodeBindings } from './connection.ts';
import type { HandlerOptions } from './handler-options.ts';
import { createIdentify } from './identify.ts';
import { createLifetime } from './lifetime.ts';
import { resolveLimits } from './limits.ts';
import { describeError } from './log.ts';
import { createPresence } from './presence.ts';
import { createRouter } from './router.ts';
import type { ServedApp } from './served-app.ts';
import type { ServerContext } from './server-context.ts';
import { createSessionOf } from './session-of.ts';
import { createSlots } from './slots.ts';

/** Answers requests; `env` is what a Node adapter knows of the connection. */
export interface FetchHandler {
  (request: Request, env?: NodeBindings): Promise<Response>;
  /** Ends the open streams of a principal; gives their number. Revoke its credentials first. */
  disconnect(principal: string): number;
}

/** An app as a fetch handler, to be mounted inside another server. It has no WebSocket; `serve` has. */
export function handler(app: ServedApp, options: HandlerOptions = {}): FetchHandler {
  return fetchOf(createServed(app, options));
}

/** Everything that the dialects of one server share. */
export function createServed(app: ServedApp, options: HandlerOptions): ServerContext {
  const { clock = systemClock, log = () => {} } = options;
  const limits = resolveLimits(options.limits);
  // Without a log the app goes on to print what fails.
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
export function fetchOf(serverContext: ServerContext): FetchHandler {
  const router = createRouter(serverContext);
  const { disconnect } = serverContext.presence;
  const fetch = async (request: Request, env?: NodeBindings): Promise<Response> =>
    router.fetch(request, env ?? {});
  return Object.assign(fetch, { disconnect });
}
