// `waymark/server` for runtimes without Node's servers, such as Workers: the bundle has no `ws` and no HTTP server, and only the
// protocols that the app imports.

import { invalid, WaymarkError } from '../core/error.ts';
import { checkOptions } from '../core/options.ts';
import {
  checkProtocols,
  createFetch,
  createServerContext,
  type FetchHandler,
} from './create-fetch.ts';
import { type HandlerOptions, handlerOptionNames } from './http/handler-options.ts';
import type { ServedApp } from './http/served-app.ts';

export { a2aProtocol } from './a2a/mount.ts';
export { aguiProtocol } from './agui/mount.ts';
export { jsonLines } from './http/log.ts';
export { mcpProtocol } from './mcp/mount.ts';
export { openAiProtocol } from './openai/mount.ts';

const makers = {
  mcp: 'mcpProtocol',
  a2a: 'a2aProtocol',
  openai: 'openAiProtocol',
  agui: 'aguiProtocol',
} as const;

/** An app as a fetch handler. It has no WebSocket. */
export function handler(app: ServedApp, options: HandlerOptions = {}): FetchHandler {
  checkOptions(options, handlerOptionNames, 'handler()');
  for (const [name, maker] of Object.entries(makers)) {
    if (!options[name as keyof typeof makers]) continue;
    throw invalid(
      `\`${name}\` as an option would put every protocol into the bundle of this runtime. Import ${maker} from waymark/server and give handler() \`protocols: [${maker}()]\`.`,
    );
  }
  return createFetch(createServerContext(app, options, checkProtocols(options.protocols ?? [])));
}

/** Refused: there is no server to start here. */
export function serve(): never {
  throw new WaymarkError(
    'UNIMPLEMENTED',
    'serve() opens a port, which this runtime does not allow. Export the function that handler(app) returns as `fetch`.',
  );
}
