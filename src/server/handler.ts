import { checkOptions } from '../core/options.ts';
import { allProtocols } from './all-protocols.ts';
import { createFetch, createServerContext, type FetchHandler } from './create-fetch.ts';
import { type HandlerOptions, handlerOptionNames } from './http/handler-options.ts';
import type { ServedApp } from './http/served-app.ts';

/** An app as a fetch handler, to be mounted inside another server. It has no WebSocket; `serve` has. */
export function handler(app: ServedApp, options: HandlerOptions = {}): FetchHandler {
  checkOptions(options, handlerOptionNames, 'handler()');
  return createFetch(createServerContext(app, options, allProtocols(options)));
}
