import { once } from '../../core/async/promises.ts';
import { failedPrecondition, invalid } from '../../core/error.ts';
import { jsonResponse } from '../http/answer.ts';
import type { McpServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { rpcRefusal } from '../http/json-rpc.ts';
import { checkPublicUrl, publicUrl } from '../http/origin.ts';
import { checkSecret } from '../http/secret.ts';
import { checkOffered, hasStore } from '../http/served-app.ts';
import type { MountedProtocol, RequestContext, ServerContext } from '../http/server-context.ts';
import { fromErrorBody } from './messages.ts';

export const mcpPath = '/mcp';
const wellKnown = '/.well-known/oauth-protected-resource';

/**
 * Offers the agents as tools to MCP clients (Streamable HTTP), at `/mcp`.
 * @example handler(app, { protocols: [mcpProtocol()] })
 */
export function mcpProtocol(options: McpServerOptions = {}): ServerProtocol {
  const { oauth, url, name = 'waymark' } = options;
  const protocol: MountedProtocol = {
    name: 'mcp',
    // Refusals before the request is read, such as a wrong host, are JSON-RPC errors as well.
    prepare(router) {
      router.use(mcpPath, async (c, next) => {
        c.set('renderError', (error) => rpcRefusal(error, fromErrorBody, challenge(c, options)));
        await next();
      });
    },
    // The metadata of the protected resource (RFC 9728), which clients read before they have a token.
    mountPublic(router) {
      if (!oauth) return;
      const answer = (c: RequestContext): Response =>
        jsonResponse({
          resource: `${publicUrl(c, url)}${mcpPath}`,
          resource_name: name,
          authorization_servers: oauth.authorizationServers,
          bearer_methods_supported: ['header'],
          scopes_supported: oauth.scopes,
        });
      router.get(`${wellKnown}${mcpPath}`, answer);
      router.get(wellKnown, answer);
    },
    mount(router, serverContext) {
      checkMcpOptions(serverContext, options);
      // Loaded when a client comes, so that a server without MCP does not load it.
      const endpoint = once(async () =>
        (await import('./endpoint.ts')).createEndpoint(serverContext, options),
      );
      router.post(mcpPath, async (c) => (await endpoint())(c));
      // Ends a session of the 2025 revisions. There is nothing to forget: see newLegacySession.
      router.delete(mcpPath, () => new Response(null, { status: 204 }));
      // Older clients try to open a stream for messages that belong to no request; there are none.
      const headers = { allow: 'POST, DELETE' };
      router.get(mcpPath, () => new Response(null, { status: 405, headers }));
    },
  };
  return protocol;
}

/** The header that tells a client without a valid token where to get one; `undefined` without `oauth`. */
function challenge(c: RequestContext, { oauth, url }: McpServerOptions): string | undefined {
  if (!oauth) return undefined;
  const metadata = `${publicUrl(c, url)}${wellKnown}${mcpPath}`;
  const scope = oauth.scopes ? `, scope="${oauth.scopes.join(' ')}"` : '';
  return `Bearer resource_metadata="${metadata}"${scope}`;
}

/** Refuses options that cannot be meant, when the server starts. */
function checkMcpOptions(
  { app, options: { auth } }: ServerContext,
  { agents, secret, url, oauth }: McpServerOptions,
): void {
  checkSecret(secret, 'mcp.secret');
  checkPublicUrl(url, 'mcp.url');
  checkOffered(app, 'mcp', agents, (agent) =>
    hasStore(agent)
      ? undefined
      : 'which has no store. MCP clients hold no state: give the agent a store, or leave it out.',
  );
  if (!oauth) return;
  if (!auth) {
    throw failedPrecondition(
      'mcp.oauth tells clients where to get a token, but this server has no `auth` that checks it.',
    );
  }
  const { authorizationServers, scopes = [] } = oauth;
  const isUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '');
  if (authorizationServers.length === 0 || !authorizationServers.every(isUrl)) {
    throw invalid(
      'mcp.oauth.authorizationServers must have the http(s) URL of at least one authorization server.',
    );
  }
  // RFC 6749 allows these characters in a scope, which becomes part of a header.
  if (scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))) return;
  throw invalid(
    'mcp.oauth.scopes has a scope with a space, a quote or another character that scopes cannot have.',
  );
}
