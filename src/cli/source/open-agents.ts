import { hasStatus, WaymarkError } from '../../core/error.ts';
import {
  type Command,
  type Declaration,
  jsonOption,
  type OptionSpecs,
  type OptionValues,
  openingCommand,
  option,
} from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { type AgentAccess, localAgent } from './agent-access.ts';
import { type AppUse, closeApp, loadApp, showErrors } from './load-app.ts';

/** Where agents run: in this process, loaded from a file, or on a server. */
export const agentsOptions = {
  file: option('file', 'The file that exports the app [agents.ts, src/agents.ts, …]', {
    short: 'f',
  }),
  url: option('url', 'The address of a running server, instead of a file', {
    short: 'u',
    takes: 'an address such as http://127.0.0.1:3000',
    read: (text: string) => (URL.canParse(text) ? text : undefined),
  }),
  header: option('name: value', 'A request header, such as "authorization: Bearer …"', {
    multiple: true,
    takes: '"name: value"',
    read: (text: string) => splitPair(text, ':'),
  }),
  owner: option('id', 'Use the sessions of this owner [those without an owner]'),
};

export const agentOption = { agent: option('name', 'Only this agent', { short: 'a' }) };

export interface OpenAgents {
  /** All agents; for {@link agentsCommand} those that `--agent` leaves. */
  readonly agents: readonly AgentAccess[];
  readonly modelNote?: string | undefined;
  /** The options that reach the same agents: `--file agents.ts`. */
  readonly sourceArguments: string;
  close(): Promise<void>;
}

const commandOptions = { ...agentOption, ...jsonOption, ...agentsOptions };

/** Declares a command that uses agents. `use`: what their app is loaded for. */
export function agentsCommand<const Specs extends OptionSpecs = Record<never, never>>(
  command: Declaration<Specs, typeof commandOptions, OpenAgents> & { readonly use?: AppUse },
): Command {
  return openingCommand<Specs, typeof commandOptions, OpenAgents>(
    command,
    commandOptions,
    async ({ options, terminal }, run) => {
      const open = await openAgents(options, terminal, command.use);
      try {
        const { agents } = open;
        const { agent } = options;
        await run({ ...open, agents: agent === undefined ? agents : [pickAgent(agents, agent)] });
      } finally {
        await open.close();
      }
    },
  );
}

/** Loads the app that `--file` names, or connects to the server that `--url` names. */
export async function openAgents(
  options: OptionValues<typeof agentsOptions> & { readonly debug?: boolean },
  { cwd, note }: Pick<Terminal, 'cwd' | 'note'>,
  use: AppUse = 'reading',
): Promise<OpenAgents> {
  const { file, url, owner } = options;
  if (url !== undefined) {
    if (file !== undefined) throw new UsageError('Use either --file or --url, not both.');
    if (owner !== undefined)
      throw new UsageError(
        '--owner works with --file only. A server takes the owner from your credentials: use --header.',
      );
    return await openServer(url, options.header ?? []);
  }
  const { app, modelNote } = await loadApp(file, cwd, use);
  showErrors(app, note, options.debug === true);
  return {
    agents: app.agents().map((agent) => localAgent(agent, owner, app.store)),
    modelNote,
    sourceArguments:
      (file === undefined ? '' : ` --file ${file}`) +
      (owner === undefined ? '' : ` --owner ${owner}`),
    close: () => closeApp(app),
  };
}

async function openServer(
  url: string,
  headers: readonly (readonly [string, string])[],
): Promise<OpenAgents> {
  const { createClient } = await import('../../client/client.ts');
  const client = createClient({
    url,
    headers: headers.map(([name, value]) => [name, value]),
    reconnect: { attempts: 3 },
  });
  const known = await client.agents().catch(notAuthenticated);
  return {
    agents: known.map(({ name }) => client.agent(name)),
    // Values may be secret.
    sourceArguments: ` --url ${url}${headers.map(([name]) => ` --header "${name}: …"`).join('')}`,
    close: async () => {},
  };
}

function notAuthenticated(error: unknown): never {
  if (!hasStatus(error, 'UNAUTHENTICATED')) throw error;
  const { status, message, details } = error;
  const hint = 'To authenticate, use --header "authorization: Bearer …".';
  throw new WaymarkError(status, `${message} ${hint}`, { details, cause: error });
}

/** A text such as `name: value` as its two parts. */
export function splitPair(text: string, separator: string): [string, string] | undefined {
  const at = text.indexOf(separator);
  return at < 1 ? undefined : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

/** The agent with this name, or the only agent. */
export function pickAgent(agents: readonly AgentAccess[], name: string | undefined): AgentAccess {
  const names = agents.map((each) => each.name).join(', ') || 'none';
  if (name !== undefined) {
    const found = agents.find((each) => each.name === name);
    if (found) return found;
    throw new WaymarkError('NOT_FOUND', `There is no agent "${name}". Agents: ${names}.`);
  }
  const [first, ...others] = agents;
  if (first && others.length === 0) return first;
  throw new UsageError(`Name an agent: ${names}.`);
}
