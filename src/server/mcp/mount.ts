import { WaymarkError } from '../../core/error.ts';
import type { McpServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import { rpcRefusal } from '../http/json-rpc.ts';
import { publicUrl } from '../http/origin.ts';
import type {
  MountedProtocol,
  RequestContext,
  Router,
  ServerContext,
} from '../http/server-context.ts';
import { fromErrorBody } from './messages.ts';
import { checkMcpOptions } from './offered-agents.ts';

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
    c.set('renderError', (error) =>
      rpcRefusal(error, fromErrorBody, challenge(serverContext, c, options)),
    );
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
  // Ends a session of the 2025 revisions. There is nothing to forget: see newLegacySession.
  router.delete(mcpPath, () => new Response(null, { status: 204 }));
  // Older clients try to open a stream for messages that belong to no request; there are none.
  router.get(
    mcpPath,
    () => new Response(null, { status: 405, headers: { allow: 'POST, DELETE' } }),
  );
}

const wellKnown = '/.well-known/oauth-protected-resource';

/** The metadata of the protected resource (RFC 9728), which clients read before they have a token. */
function mountMcpMetadata(
  router: Router,
  serverContext: ServerContext,
  { oauth, url, name = 'waymark' }: McpServerOptions,
): void {
  if (!oauth) return;
  const answer = (c: RequestContext): Response =>
    jsonResponse({
      resource: `${publicUrl(serverContext, c, url)}${mcpPath}`,
      resource_name: name,
      authorization_servers: oauth.authorizationServers,
      bearer_methods_supported: ['header'],
      ...(oauth.scopes && { scopes_supported: oauth.scopes }),
    });
  router.get(`${wellKnown}${mcpPath}`, answer);
  router.get(wellKnown, answer);
}

/** The header that tells a client without a valid token where to get one; `undefined` without `oauth`. */
function challenge(
  serverContext: ServerContext,
  c: RequestContext,
  { oauth, url }: McpServerOptions,
): string | undefined {
  if (!oauth) return undefined;
  const metadata = `${publicUrl(serverContext, c, url)}${wellKnown}${mcpPath}`;
  const scope = oauth.scopes ? `, scope="${oauth.scopes.join(' ')}"` : '';
  return `Bearer resource_metadata="${metadata}"${scope}`;
}

/** Refuses options that cannot be meant, when the server starts. */
function checkOAuth({ options: { auth } }: ServerContext, { oauth }: McpServerOptions): void {
  if (!oauth) return;
  if (!auth) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'mcp.oauth tells clients where to get a token, but this server has no `auth` that checks it.',
    );
  }
  const { authorizationServers, scopes = [] } = oauth;
  const isUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '');
  if (authorizationServers.length === 0 || !authorizationServers.every(isUrl)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'mcp.oauth.authorizationServers must have the http(s) URL of at least one authorization server.',
    );
  }
  // RFC 6749 allows these characters in a scope, which becomes part of a header.
  const wrong = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  if (wrong === undefined) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'mcp.oauth.scopes has a scope with a space, a quote or another character that scopes cannot have.',
  );
}

/** Where the endpoint of MCP is. */
export const mcpPath = '/mcp';
