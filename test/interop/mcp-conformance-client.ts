/** A client for the conformance suite of MCP: an agent with the tools of the server that the last argument names. */
import {
  auth,
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  PrivateKeyJwtProvider,
} from '@modelcontextprotocol/client';
import { memoryStore, waymark } from '../../src/index.ts';
import { type McpSource, mcp } from '../../src/mcp/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

const url = process.argv.at(-1) ?? '';
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

/** A user who agrees to everything: the authorization server of the suite answers with a code at once. */
class WillingUser implements OAuthClientProvider {
  code: string | undefined;
  readonly redirectUrl = 'http://127.0.0.1:1/callback';
  readonly clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  readonly clientMetadata = {
    client_name: 'waymark',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
  };
  #client: OAuthClientInformationMixed | undefined =
    context.client_id === undefined ? undefined : context;
  #tokens: OAuthTokens | undefined;
  #verifier = '';
  #discovered: OAuthDiscoveryState | undefined;

  clientInformation = () => this.#client;
  saveClientInformation = (client: OAuthClientInformationMixed): void => {
    this.#client = client;
  };
  tokens = () => this.#tokens;
  saveTokens = (tokens: OAuthTokens): void => {
    this.#tokens = tokens;
  };
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier: string): void => {
    this.#verifier = verifier;
  };
  discoveryState = () => this.#discovered;
  saveDiscoveryState = (state: OAuthDiscoveryState): void => {
    this.#discovered = state;
  };
  invalidateCredentials = (): void => {
    this.#tokens = undefined;
  };
  redirectToAuthorization = async (address: URL): Promise<void> => {
    const response = await fetch(address, { redirect: 'manual' });
    const location = response.headers.get('location');
    this.code = (location && new URL(location).searchParams.get('code')) || undefined;
  };
}

const user = new WillingUser();

function providerOf(): OAuthClientProvider | undefined {
  if (!scenario.startsWith('auth/')) return undefined;
  if (scenario === 'auth/client-credentials-basic') {
    const { client_id: clientId, client_secret: clientSecret } = context;
    return new ClientCredentialsProvider({ clientId, clientSecret });
  }
  if (scenario === 'auth/client-credentials-jwt') {
    return new PrivateKeyJwtProvider({
      clientId: context.client_id,
      privateKey: context.private_key_pem,
      algorithm: context.signing_algorithm ?? 'ES256',
    });
  }
  if (scenario === 'auth/cross-app-access-complete-flow') {
    return new CrossAppAccessProvider({
      clientId: context.client_id,
      clientSecret: context.client_secret,
      assertion: async ({ authorizationServerUrl, resourceUrl, scope }) => {
        const { jwtAuthGrant } = await discoverAndRequestJwtAuthGrant({
          idpUrl: context.idp_issuer,
          audience: String(authorizationServerUrl),
          resource: String(resourceUrl),
          idToken: context.idp_id_token,
          clientId: context.idp_client_id,
          ...(scope !== undefined && { scope }),
        });
        return jwtAuthGrant;
      },
    });
  }
  return user;
}

/** One turn, in which the model calls each tool of the server once and agrees to what it asks. */
async function turn(source: McpSource): Promise<void> {
  const app = waymark({
    store: memoryStore(),
    model: scriptedModel({
      patterns: [
        [
          /^Call/,
          (_, { tools }) =>
            tools.length === 0
              ? 'There are no tools.'
              : { toolCalls: tools.map(({ name }) => ({ name, input: { a: 5, b: 3 } })) },
        ],
      ],
      otherwise: 'Done.',
    }),
    onError: (error) => console.error(String(error)),
  });
  const agent = app.defineAgent({ name: 'lead', system: 'Call.', tools: [source] });
  try {
    let output = await agent.run('Call them');
    while (output.interrupts.length > 0) {
      output = await agent.resume(output, (asked) =>
        asked.approve({ resumed: { action: 'accept', content: {} } }),
      );
    }
    console.log(JSON.stringify(output.state?.messages));
  } finally {
    await app.close();
  }
}

const provider = providerOf();
// As the suite asks: no more than three attempts to log in.
for (let attempt = 1; attempt <= 3; attempt++) {
  user.code = undefined;
  await turn(mcp('suite', { url, ...(provider && { auth: provider }) }));
  if (user.code === undefined) break;
  await auth(user, { serverUrl: url, authorizationCode: user.code });
}
