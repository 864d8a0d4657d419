import { errorHeaders, httpStatusOf, toWireError } from '../http/errors.ts';
import type { McpServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import type { MountedProtocol, Router, ServerContext } from '../http/server-context.ts';
import { errorMessage, fromErrorBody } from './errors.ts';
import { challenge, checkOAuth, mountMcpMetadata } from './oauth.ts';
import { checkMcpOptions } from './offered-agents.ts';
import { mcpPath } from './path.ts';

/**
 * Offers the agents as tools to MCP clients, at `/mcp`.
 * @example handler(app, { protocols: [mcpProtocol()] })
 */
export function mcpProtocol(options: McpServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'mcp',
    prepare: (router, serverContext) => prepareMcp(router, serverContext, options),
    mountPublic: (router, serverContext) => mountMcpMetadata(router, serverContext, options),
    mount: (router, serverContext) => mountMcp(router, serverContext, options),
  };
  return protocol;
}

/** Refusals before the request is read, such as a wrong host, are JSON-RPC errors as well. */
function prepareMcp(router: Router, serverContext: ServerContext, options: McpServerOptions): void {
  router.use(mcpPath, async (c, next) => {
    c.set('renderError', (error) => refusal(error, challenge(serverContext, c, options)));
    await next();
  });
}

/** The agents as tools of an MCP server (Streamable HTTP), at `/mcp`. */
function mountMcp(router: Router, serverContext: ServerContext, options: McpServerOptions): void {
  checkMcpOptions(serverContext.app, options);
  checkOAuth(serverContext, options);
  // Loaded when a client comes, so that a server without MCP does not load it.
  let endpoint: Promise<import('./endpoint.ts').Endpoint> | undefined;
  const load = async (): Promise<import('./endpoint.ts').Endpoint> =>
    (await import('./endpoint.ts')).createEndpoint(serverContext, options);
  router.post(mcpPath, async (c) => {
    endpoint ??= load();
    return (await endpoint)(c);
  });
  // Ends a session of the 2025 revisions. There is nothing to forget: see legacy-session.ts.
  router.delete(mcpPath, () => new Response(null, { status: 204 }));
  // Older clients try to open a stream for messages that belong to no request; there are none.
  router.get(
    mcpPath,
    () => new Response(null, { status: 405, headers: { allow: 'POST, DELETE' } }),
  );
}

function refusal(error: unknown, challenged: string | undefined): Response {
  const body = toWireError(error);
  const isChallenge = body.status === 'UNAUTHENTICATED' && challenged !== undefined;
  return jsonResponse(errorMessage(null, fromErrorBody(body)), {
    status: httpStatusOf(body),
    headers: { ...errorHeaders(body), ...(isChallenge && { 'www-authenticate': challenged }) },
  });
}
