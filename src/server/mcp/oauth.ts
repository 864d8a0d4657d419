import { WaymarkError } from '../../core/error.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import { publicUrl } from '../http/origin.ts';
import type { RequestContext, Router, ServerContext } from '../http/server-context.ts';
import { mcpPath } from './path.ts';

const wellKnown = '/.well-known/oauth-protected-resource';

/** The metadata of the protected resource (RFC 9728), which clients read before they have a token. */
export function mountMcpMetadata(
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
export function challenge(
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
export function checkOAuth(
  { options: { auth } }: ServerContext,
  { oauth }: McpServerOptions,
): void {
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
  // What RFC 6749 allows in a scope: it becomes part of a header.
  const wrong = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  if (wrong === undefined) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'mcp.oauth.scopes has a scope with a space, a quote or another character that scopes cannot have.',
  );
}
