import {
  auth,
  ClientCredentialsProvider,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
} from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type App, memoryStore, waymark } from 'waymark';
import { type McpSource, mcp } from 'waymark/mcp';
import { type RunningServer, serve } from 'waymark/server';
import { type ScriptStep, scriptedModel } from 'waymark/testing';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from './support/authorization-server.ts';

let login: AuthorizationServer;
let server: RunningServer;
let remote: App;
const apps: App[] = [];

beforeAll(async () => {
  login = await startAuthorizationServer();
  remote = waymark({
    store: memoryStore(),
    model: scriptedModel({ patterns: [], otherwise: 'Fine.' }),
  });
  remote.defineAgent({ name: 'desk', system: 'Help.' });
  server = await serve(remote, {
    port: 0,
    grace: 0,
    log: () => {},
    auth: (request) => {
      const token = request.headers.get('authorization')?.replace('Bearer ', '');
      const principal = login.userOf(token, `http://127.0.0.1:${server.port}/mcp`);
      return principal === undefined ? undefined : { principal };
    },
    mcp: { oauth: { authorizationServers: [login.url], scopes: ['agents'] } },
  });
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close({ grace: 0 })));
});
afterAll(async () => {
  await server.close();
  await remote.close({ grace: 0 });
  login.close();
});

const url = (): string => `http://127.0.0.1:${server.port}/mcp`;
const last: ScriptStep = ({ messages, tools }) =>
  `${JSON.stringify(messages.at(-1)?.content)} ${tools?.map(({ name }) => name).join()}`;

/** An app whose agent calls the desk of the server, and what went wrong. */
function leadOf(source: McpSource): { readonly app: App; readonly errors: string[] } {
  const errors: string[] = [];
  const app = waymark({
    store: memoryStore(),
    model: scriptedModel({
      patterns: [[/^Ask/, { toolCalls: [{ name: 'crm_desk', input: { message: 'Hi' } }] }]],
      otherwise: last,
    }),
    onError: (error) => errors.push(String(error)),
  });
  app.defineAgent({ name: 'lead', system: 'Ask.', tools: [source] });
  apps.push(app);
  return { app, errors };
}

const sessionsOf = async (owner: string): Promise<number> =>
  (await remote.agent('desk').listSessions({ owner })).items.length;

test('S517 a request without a token is told where to get one', async () => {
  const refused = await fetch(url(), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  expect(refused.status).toBe(401);
  const header = refused.headers.get('www-authenticate') ?? '';
  const base = url().replace('/mcp', '');
  const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
  expect(header).toBe(`Bearer resource_metadata="${metadata}", scope="agents"`);
  for (const address of [metadata, `${base}/.well-known/oauth-protected-resource`]) {
    expect(await (await fetch(address)).json()).toEqual({
      resource: url(),
      resource_name: 'waymark',
      authorization_servers: [login.url],
      bearer_methods_supported: ['header'],
      scopes_supported: ['agents'],
    });
  }
  // Other endpoints have no such resource.
  const native = await fetch(`${base}/agents`);
  expect(native.headers.get('www-authenticate')).toBe('Bearer');
});

test('S517 options that cannot be meant are refused', async () => {
  const oauth = { authorizationServers: [login.url] };
  const serving = (options: Parameters<typeof serve>[1]): Promise<unknown> =>
    serve(remote, { port: 0, log: () => {}, ...options });
  await expect(serving({ mcp: { oauth } })).rejects.toThrow(/no `auth`/);
  const known = { auth: () => undefined };
  const none = { oauth: { authorizationServers: [] } };
  await expect(serving({ ...known, mcp: none })).rejects.toThrow(/at least one/);
  const scopes = { oauth: { ...oauth, scopes: ['a"b'] } };
  await expect(serving({ ...known, mcp: scopes })).rejects.toThrow(/scopes/);
  await expect(serving({ ...known, mcp: { url: 'agents' } })).rejects.toThrow(/mcp\.url/);
});

test('client credentials: the token is fetched when it is needed, and again when it expired', async () => {
  const provider = new ClientCredentialsProvider({
    clientId: 'machine',
    clientSecret: 'secret',
    expectedIssuer: login.url,
  });
  const { app } = leadOf(mcp('crm', { url: url(), auth: provider }));
  const lead = app.agent('lead');
  login.grants.length = 0;
  expect((await lead.run('Ask')).text).toContain('sessionId');
  expect(login.grants).toEqual(['client_credentials']);
  login.expire();
  expect((await lead.run('Ask')).text).toContain('sessionId');
  expect(login.grants).toHaveLength(2);
  expect(await sessionsOf('machine')).toBe(2);
});

/** The tokens of one user, and where the user was sent to log in. */
class UserProvider implements OAuthClientProvider {
  readonly user: string;
  loginUrl: URL | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier = '';
  #discovered: OAuthDiscoveryState | undefined;

  constructor(user: string) {
    this.user = user;
  }
  readonly redirectUrl = 'http://127.0.0.1/callback';
  readonly clientMetadata = { redirect_uris: ['http://127.0.0.1/callback'] };
  readonly clientInformation = (): { client_id: string } => ({ client_id: 'app' });
  readonly tokens = (): OAuthTokens | undefined => this.#tokens;
  readonly saveTokens = (tokens: OAuthTokens): void => {
    this.#tokens = tokens;
  };
  readonly redirectToAuthorization = (loginUrl: URL): void => {
    loginUrl.searchParams.set('login_hint', this.user);
    this.loginUrl = loginUrl;
  };
  readonly saveCodeVerifier = (verifier: string): void => {
    this.#verifier = verifier;
  };
  readonly codeVerifier = (): string => this.#verifier;
  readonly saveDiscoveryState = (state: OAuthDiscoveryState): void => {
    this.#discovered = state;
  };
  readonly discoveryState = (): OAuthDiscoveryState | undefined => this.#discovered;
}

test('S518 each user logs in, and calls the server with credentials of their own', async () => {
  const providers = new Map(['ada', 'bob'].map((user) => [user, new UserProvider(user)]));
  const providerOf = (user = ''): UserProvider => providers.get(user) ?? new UserProvider(user);
  const { app, errors } = leadOf(
    mcp('crm', {
      url: url(),
      user: ({ user }) => user as string | undefined,
      auth: providerOf,
    }),
  );
  const lead = app.agent('lead');
  const ask = async (user?: string): Promise<string> =>
    (await lead.run('Ask', { context: user === undefined ? {} : { user } })).text;

  expect(await ask('ada')).toMatch(/not available|no tool/i);
  expect(errors.join()).toContain('requires authorization');
  const { loginUrl } = providerOf('ada');
  const answered = await fetch(loginUrl ?? '', { redirect: 'manual' });
  const code = new URL(answered.headers.get('location') ?? '').searchParams.get('code') ?? '';
  await auth(providerOf('ada'), { serverUrl: url(), authorizationCode: code });
  login.grants.length = 0;
  await expect.poll(() => ask('ada')).toContain('sessionId');
  expect(await sessionsOf('ada')).toBe(1);
  // The refresh token is used when the access token has expired.
  login.expire();
  expect(await ask('ada')).toContain('sessionId');
  expect(login.grants).toEqual(['refresh_token']);

  expect(await ask('bob')).not.toContain('sessionId');
  expect(await ask()).not.toContain('sessionId');
  expect([await sessionsOf('ada'), await sessionsOf('bob')]).toEqual([2, 0]);
});
