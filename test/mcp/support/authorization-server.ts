import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

/** An OAuth 2.1 authorization server, as small as clients need it. */
export interface AuthorizationServer {
  readonly url: string;
  /** The grants that were asked for. */
  readonly grants: string[];
  /** The user of a valid token for a resource. */
  userOf(token: string | undefined, resource: string): string | undefined;
  /** Makes all access tokens invalid; refresh tokens stay valid. */
  expire(): void;
  close(): void;
}

interface Grant {
  readonly user: string;
  readonly resource: string;
  readonly challenge?: string;
}

/** Starts one. The user of a code is the `login_hint` of the request; the user of client credentials is the client. */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const codes = new Map<string, Grant>();
  const access = new Map<string, Grant>();
  const refresh = new Map<string, Grant>();
  const grants: string[] = [];
  let url = '';

  const tokensOf = (grant: Grant): object => {
    const [token, again] = [randomUUID(), randomUUID()];
    access.set(token, grant);
    refresh.set(again, grant);
    return { access_token: token, refresh_token: again, token_type: 'Bearer', expires_in: 3600 };
  };
  const take = (form: URLSearchParams, clientId: string): Grant | undefined => {
    const resource = form.get('resource') ?? '';
    const code = form.get('code') ?? '';
    const again = form.get('refresh_token') ?? '';
    switch (form.get('grant_type')) {
      case 'client_credentials':
        return { user: clientId, resource };
      case 'refresh_token':
        return refresh.get(again);
      case 'authorization_code': {
        const grant = codes.get(code);
        codes.delete(code);
        const hash = createHash('sha256').update(form.get('code_verifier') ?? '');
        return grant?.challenge === hash.digest('base64url') ? grant : undefined;
      }
      default:
        return undefined;
    }
  };

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', url);
    const send = (status: number, body: object, headers = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    if (pathname === '/.well-known/oauth-authorization-server') {
      return send(200, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
      });
    }
    if (pathname === '/authorize') {
      const code = randomUUID();
      codes.set(code, {
        user: searchParams.get('login_hint') ?? '',
        resource: searchParams.get('resource') ?? '',
        challenge: searchParams.get('code_challenge') ?? '',
      });
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', code);
      return send(302, {}, { location: back.href });
    }
    if (pathname !== '/token') return send(404, {});
    const form = new URLSearchParams(await text(request));
    grants.push(form.get('grant_type') ?? '');
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const [clientId = ''] = Buffer.from(basic, 'base64').toString().split(':');
    const grant = take(form, clientId);
    return grant ? send(200, tokensOf(grant)) : send(400, { error: 'invalid_grant' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  return {
    url,
    grants,
    userOf(token, resource) {
      const grant = access.get(token ?? '');
      return grant?.resource === resource ? grant.user : undefined;
    },
    expire: () => access.clear(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
