import type { McpServer } from '@agentclientprotocol/sdk';
import type { AgentOptionsBase } from '../agent/contract/options.ts';
import { agentOptionNames } from '../agent/contract/options.ts';
import { invalid } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';

/** Options of an agent of another vendor, besides those of every agent. */
export interface AcpAgentOptions extends AgentOptionsBase<undefined, undefined, undefined> {
  /** The program that speaks ACP on its standard input and output, with its arguments. */
  readonly command: readonly string[];
  /**
   * Environment variables for the program, such as its API key. Besides these it gets only a few such as `PATH` and `HOME`, so that the
   * secrets of your process stay there.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The folder of an agent without a `workspace`. @default the working directory of this process */
  readonly cwd?: string;
  /** MCP servers for the agent, as ACP describes them. */
  readonly mcpServers?: readonly McpServer[];
  /** The id of the mode in which its sessions run. @default the agent's own */
  readonly mode?: string;
  /** Values of its configuration options, by id. @default the agent's own */
  readonly config?: Readonly<Record<string, string | boolean>>;
  /** Milliseconds for starting the program and opening a session. @default 60000 */
  readonly startTimeout?: number;
  /** Milliseconds without a sign of life after which a turn fails. @default 600000 */
  readonly idleTimeout?: number;
  /** Milliseconds after a turn after which the program is ended. @default 300000 */
  readonly keepAlive?: number;
  /** The largest message of the program in bytes. @default 8388608 (8 MiB) */
  readonly maxMessageBytes?: number;
  /** All messages of one turn together, in bytes. @default 67108864 (64 MiB) */
  readonly maxTurnBytes?: number;
}

const defaults = {
  startTimeout: 60_000,
  idleTimeout: 600_000,
  keepAlive: 300_000,
  maxMessageBytes: 8 * 2 ** 20,
  maxTurnBytes: 64 * 2 ** 20,
};

const ownNames = {
  command: true,
  env: 'object',
  cwd: 'text',
  mcpServers: true,
  mode: 'text',
  config: 'object',
  startTimeout: 'number',
  idleTimeout: 'number',
  keepAlive: 'number',
  maxMessageBytes: 'number',
  maxTurnBytes: 'number',
} as const;

export type AcpSettings = Pick<AcpAgentOptions, 'name' | 'command' | 'env' | 'cwd' | 'mode'> &
  Required<Pick<AcpAgentOptions, 'config' | 'mcpServers' | keyof typeof defaults>>;

/** The options for the definition of the agent, and the settings of its program. */
export function resolveOptions(options: AcpAgentOptions): {
  readonly agent: AgentOptionsBase<undefined, undefined, undefined>;
  readonly settings: AcpSettings;
} {
  const names: OptionNames<AcpAgentOptions> = { ...agentOptionNames, ...ownNames };
  checkOptions(options, names, 'acpAgent()');
  const { command, env, cwd, mode, mcpServers = [], config = {}, ...rest } = options;
  const { startTimeout, idleTimeout, keepAlive, maxMessageBytes, maxTurnBytes, ...agent } = rest;
  if (
    !Array.isArray(command) ||
    command.length === 0 ||
    command.some((each) => typeof each !== 'string' || each === '')
  ) {
    throw invalid(
      "`command` of acpAgent() must be a program with its arguments: ['npx', 'agent'].",
    );
  }
  const limits = {
    ...defaults,
    ...defined({ startTimeout, idleTimeout, keepAlive, maxMessageBytes, maxTurnBytes }),
  };
  for (const [name, value] of Object.entries(limits)) {
    if (!(value > 0)) throw invalid(`\`${name}\` of acpAgent() must be a positive number.`);
  }
  return {
    agent,
    settings: {
      name: agent.name,
      command,
      mcpServers,
      config,
      ...defined({ env, cwd, mode }),
      ...limits,
    },
  };
}
