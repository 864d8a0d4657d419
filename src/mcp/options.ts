import type { AuthProvider, FetchLike, OAuthClientProvider } from '@modelcontextprotocol/client';
import type { ActionContext } from '../core/action.ts';
import { invalid } from '../core/error.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import type { Clock } from '../core/time.ts';

/** Options of every MCP server. */
interface CommonOptions {
  /** The prefix of the tool names. @default the name of the server and `_` */
  readonly prefix?: string;
  /** New names for tools, by the server's own names. They get no prefix. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Milliseconds without a result or progress after which a call fails. @default 60000 */
  readonly timeout?: number;
  /** Milliseconds that connecting may take. @default 30000 */
  readonly connectTimeout?: number;
  /**
   * Milliseconds after which the list of tools is read again. If the server announces a change, or says how long its list is
   * valid, the list is read again at that time. @default 300000
   */
  readonly ttl?: number;
  /** Maximum size of one message from the server in bytes. A server that sends more is disconnected. @default 10485760 */
  readonly maxMessageBytes?: number;
  /**
   * Asks the server to run calls as tasks. The id of a task is stored with the run, so a process that takes over the turn waits for
   * the task instead of calling the tool again. In place of progress, the tool streams the server's status messages for the task.
   * If `false`, only tools that require it run as tasks. @default false
   */
  readonly tasks?: boolean;
  /** @default the system's */
  readonly clock?: Clock;
}

/** An MCP server that runs as a process of this machine and speaks over its standard input and output. */
export interface McpCommand extends CommonOptions {
  /** The program to start. */
  readonly command: string;
  /** Its arguments. */
  readonly args?: readonly string[];
  /**
   * Environment variables for the server. Besides these it gets only a few such as `PATH` and `HOME`, so that the
   * secrets of your process stay there. Variables without a value are left out.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The working directory of the server. @default the working directory of this process */
  readonly cwd?: string;
}

/** An MCP server that is reached over HTTP. */
export interface McpUrl extends CommonOptions {
  /** The address of the server. */
  readonly url: string | URL;
  /**
   * Headers for each request to the server, or a function that returns them, such as one that refreshes a token. It gets the
   * user if there is a `user`.
   */
  readonly headers?: McpHeaders | ((user?: string) => McpHeaders | Promise<McpHeaders>);
  /** A token provider, an OAuth client provider from `@modelcontextprotocol/client`, or a function that returns one for a user. */
  readonly auth?: McpAuth | ((user?: string) => McpAuth | Promise<McpAuth>);
  /**
   * Returns the user of a call, from the context that the caller passes. Each user has a connection with their own credentials, and
   * gets the tools that the server lists for them. A call without a user gets no tools. @default all callers share one connection
   */
  readonly user?: (context: ActionContext) => string | undefined;
  /** @default the global one */
  readonly fetch?: FetchLike;
}

/** How requests to an MCP server are authorized. */
type McpAuth = AuthProvider | OAuthClientProvider;

/** Headers of requests to an MCP server. */
type McpHeaders = Readonly<Record<string, string>>;

/** How an MCP server is reached: a command to start, or a URL. */
export type McpServer = McpCommand | McpUrl;

const common: OptionNames<CommonOptions> = {
  prefix: true,
  rename: true,
  timeout: true,
  connectTimeout: true,
  ttl: true,
  maxMessageBytes: true,
  tasks: true,
  clock: true,
};
const commandNames: OptionNames<McpCommand> = {
  ...common,
  command: true,
  args: true,
  env: true,
  cwd: true,
};
const urlNames: OptionNames<McpUrl> = {
  ...common,
  url: true,
  headers: true,
  auth: true,
  user: true,
  fetch: true,
};

export function checkMcpOptions(name: string, options: McpServer): void {
  const what = `MCP server "${name}"`;
  if (!/^[A-Za-z][\w-]{0,31}$/.test(name)) {
    throw invalid(
      `"${name}" cannot be the name of an MCP server: use a letter, then letters, digits, "_" and "-", at most 32.`,
    );
  }
  if ('command' in options === 'url' in options) {
    throw invalid(`${what} needs a \`command\` to start or a \`url\`, one of them.`);
  }
  checkOptions(options, 'command' in options ? commandNames : urlNames, what);
  if ('url' in options && !/^https?:/.test(String(options.url))) {
    throw invalid(`The url of ${what} must begin with http:// or https://.`);
  }
  const numbers = ['timeout', 'connectTimeout', 'ttl', 'maxMessageBytes'] as const;
  for (const key of numbers) {
    const value = options[key];
    if (value !== undefined && !(Number.isFinite(value) && value >= (key === 'ttl' ? 0 : 1))) {
      throw invalid(`\`${key}\` of ${what} must be a positive number.`);
    }
  }
}
