import { checkOptions } from '../core/options.ts';
import { a2aProtocol } from './a2a/mount.ts';
import { aguiProtocol } from './agui/mount.ts';
import {
  checkProtocols,
  createFetch,
  createServerContext,
  type FetchHandler,
} from './create-fetch.ts';
import { type HandlerOptions, handlerOptionNames } from './http/handler-options.ts';
import type { ServedApp } from './http/served-app.ts';
import type { MountedProtocol } from './http/server-context.ts';
import { mcpProtocol } from './mcp/mount.ts';
import { openAiProtocol } from './openai/mount.ts';
import { reflectionProtocol } from './reflection/mount.ts';

/** An app as a fetch handler, to be mounted inside another server. It has no WebSocket; `serve` has. */
export function handler(app: ServedApp, options: HandlerOptions = {}): FetchHandler {
  checkOptions(options, handlerOptionNames, 'handler()');
  return createFetch(createServerContext(app, options, allProtocols(options)));
}

/** The protocols of a server, named by their options or given as objects. A bundle that imports this has all of them. */
export function allProtocols(options: HandlerOptions): readonly MountedProtocol[] {
  const { mcp, a2a, openai, agui, protocols, auth, reflection = !auth } = options;
  return checkProtocols([
    ...(mcp ? [mcpProtocol(mcp === true ? {} : mcp)] : []),
    ...(a2a ? [a2aProtocol(a2a === true ? {} : a2a)] : []),
    ...(openai ? [openAiProtocol(openai === true ? {} : openai)] : []),
    ...(agui ? [aguiProtocol(agui === true ? {} : agui)] : []),
    ...(protocols ?? []),
    ...(reflection ? [reflectionProtocol] : []),
  ]);
}
