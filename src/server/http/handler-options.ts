import type { JsonObject } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import type { Clock } from '../../core/time.ts';
import type { Auth, AuthorizeCall } from './auth.ts';
import type { ServerLimits } from './limits.ts';
import type { Log } from './log.ts';

/** Which pages of other sites may call, and whether with cookies. */
interface CorsOptions {
  /** Origins such as `https://app.example.com`; `true` for all, which excludes `credentials`. */
  readonly origins: true | readonly string[];
  /** @default false */
  readonly credentials?: boolean;
}

/** How agents are offered to MCP clients. */
export interface McpServerOptions {
  /** The names of the agents to offer. @default all agents with a store */
  readonly agents?: readonly string[];
  /** The purpose of the server; clients give it to their model. */
  readonly instructions?: string;
  /** The name that clients show. @default 'waymark' */
  readonly name?: string;
  /** The version that clients show. @default '1' */
  readonly version?: string;
  /**
   * Signs the state that clients hold while their user answers an interrupt. At least 32 bytes. Set it if several processes serve
   * the app, or if answers must be accepted after a restart. To rotate it, pass several: the first one signs. @default random
   */
  readonly secret?: string | readonly string[] | undefined;
  /** Whether clients get the skills of the agents (SEP-2640). Skills of MCP servers are not passed on. @default true */
  readonly skills?: boolean;
  /** Tells clients without a token where to get one (OAuth 2.1). Your `auth` checks the tokens. @default off */
  readonly oauth?: McpOAuthOptions;
  /** The public URL of this server, for `oauth`. Set it behind a proxy. @default the host of the request */
  readonly url?: string;
}

/** Where MCP clients get their tokens. */
interface McpOAuthOptions {
  /** The issuers of the tokens that `auth` accepts, such as `https://login.example.com`. */
  readonly authorizationServers: readonly string[];
  /** The scopes that a client should ask for. */
  readonly scopes?: readonly string[];
}

/** How agents are offered to A2A clients. */
export interface A2aServerOptions {
  /** The names of the agents to offer; the first one has the card at `/.well-known/agent-card.json`. @default all that can run in the background */
  readonly agents?: readonly string[];
  /** The public URL of this server, for the cards. Set it behind a proxy. @default the host of the request */
  readonly url?: string;
  /** The version of the agents that clients show. @default '1' */
  readonly version?: string;
  /** More fields for the cards, such as `provider` and `securitySchemes`. Cards are public. */
  readonly card?: JsonObject;
}

/** Settings that callers of the OpenAI endpoints may decide, though the agent's definition says otherwise. */
type OpenAiAllowance = 'instructions' | 'sampling' | 'history' | 'tools';

/** How agents are offered to clients of OpenAI. */
export interface OpenAiServerOptions {
  /** The names of the agents to offer as models. @default all agents */
  readonly agents?: readonly string[];
  /**
   * The settings that callers may decide. `instructions`: more instructions for the model, as `instructions` or as system and developer
   * messages. `sampling`: `temperature`, `top_p`, `max_output_tokens` and `reasoning.effort`. `history`: earlier messages that this
   * server has not seen, including the assistant's. `tools`: `tool_choice`, including the agent's own tools. @default []
   */
  readonly allow?: readonly OpenAiAllowance[];
  /**
   * Signs the state that clients hold with `store: false`. At least 32 bytes. Set it if several processes serve the app, or if the
   * state must be accepted after a restart. To rotate it, pass several: the first one signs. @default random
   */
  readonly secret?: string | readonly string[] | undefined;
}

/** How agents are offered to AG-UI clients, such as CopilotKit. */
export interface AguiServerOptions {
  /** The names of the agents to offer. @default all agents with a store */
  readonly agents?: readonly string[];
  /**
   * The handling of a turn whose client disconnects, which is how AG-UI clients cancel a run: it is aborted and keeps its partial
   * answer, or it continues, and a client that reloads can connect to it. @default 'abort'
   */
  readonly onDisconnect?: 'continue' | 'abort';
}

/** A protocol for clients of other systems, made by `mcpProtocol`, `a2aProtocol`, `openAiProtocol` or `aguiProtocol`. */
export interface ServerProtocol {
  /** The name of the protocol. */
  readonly name: 'mcp' | 'a2a' | 'openai' | 'agui' | 'reflection';
}

/** How an app is served. */
export interface HandlerOptions {
  /** Authenticates requests. Without it, the server answers only requests to a loopback host, and all clients share all sessions. */
  readonly auth?: Auth | undefined;
  /**
   * May refuse a call that `auth` let through: `false` is `PERMISSION_DENIED`, and a `WaymarkError` stands as it is. Any other error is
   * a failure of the server, as in {@link Auth}.
   */
  readonly authorize?:
    | ((call: AuthorizeCall) => boolean | undefined | Promise<boolean | undefined>)
    | undefined;
  /** The path under which the handler is mounted. @default '' */
  readonly basePath?: string | undefined;
  /**
   * The address of the client, for limits that count by address. Behind a proxy, read the header that your proxy sets: by
   * default all clients of a proxy share its address.
   */
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined;
  /**
   * Milliseconds after which the caller of an open stream or WebSocket is authenticated again, with the request that opened
   * it. If `auth` rejects it, or returns another principal, the connection is closed. @default only when it is opened
   */
  readonly reauthenticate?: number | undefined;
  /** Which browser pages may call the server. @default only pages of the same origin */
  readonly cors?: CorsOptions | undefined;
  /**
   * The handling of a turn whose client disconnects: it continues and the client can reconnect, or it is aborted.
   * @default 'continue'
   */
  readonly onDisconnect?: 'continue' | 'abort' | undefined;
  /** Milliseconds without data on a stream after which a keep-alive is sent. @default 15000 */
  readonly keepAlive?: number | undefined;
  /** Limits for requests and clients. */
  readonly limits?: Partial<ServerLimits> | undefined;
  /**
   * The calls of Genkit's development tools under `/api`, for clients on this machine only; they run any action.
   * @default true without `auth`, else false
   */
  readonly reflection?: boolean | undefined;
  /**
   * Lets clients edit the custom state and artifacts of their sessions. Tools that trust the state then trust the client.
   * @default true without `auth`, else false
   */
  readonly edit?: boolean | undefined;
  /** Offers the agents as tools to MCP clients, at `/mcp`. @default false */
  readonly mcp?: boolean | McpServerOptions | undefined;
  /**
   * Offers the agents to A2A clients, at `/a2a/:agent`, with public cards at `/.well-known/agent-card.json` and
   * `/a2a/:agent/.well-known/agent-card.json`. Push notifications need `webhooks` of the app. @default false
   */
  readonly a2a?: boolean | A2aServerOptions | undefined;
  /** Offers the agents as models to clients of OpenAI's Responses and Chat Completions APIs, at `/openai/v1`. @default false */
  readonly openai?: boolean | OpenAiServerOptions | undefined;
  /** Offers the agents to AG-UI clients, at `/agui/:agent`. @default false */
  readonly agui?: boolean | AguiServerOptions | undefined;
  /**
   * The same protocols as objects, such as `[mcpProtocol()]`. On Workers and edge runtimes this is the only way to offer them:
   * a bundle then contains only the protocols that it imports. @default []
   */
  readonly protocols?: readonly ServerProtocol[] | undefined;
  /**
   * Keeps the process alive for work that outlasts its response: turns whose client has disconnected, and background runs. Pass the
   * function of a platform that ends processes with their requests: `waitUntil` from `cloudflare:workers` or `@vercel/functions`. @default none
   */
  readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  /** Compresses responses that are not streams. Cloudflare Workers do that themselves. @default true */
  readonly compress?: boolean | undefined;
  /**
   * Gets one entry per request and per failure. By default, `serve` writes to standard output, as readable lines on a terminal and as
   * JSON lines elsewhere, and `handler` logs nothing.
   */
  readonly log?: Log | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export const handlerOptionNames: OptionNames<HandlerOptions> = {
  auth: 'function',
  authorize: 'function',
  basePath: 'text',
  clientAddress: 'function',
  reauthenticate: true,
  cors: 'object',
  onDisconnect: true,
  keepAlive: true,
  limits: 'object',
  reflection: true,
  edit: true,
  compress: true,
  mcp: true,
  a2a: true,
  openai: true,
  agui: true,
  protocols: 'list',
  waitUntil: 'function',
  log: 'function',
  clock: true,
};
