import { WaymarkError } from '../../core/error.ts';
import type { OptionSpecs, OptionValues } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { type AgentAccess, localAgent } from './agent-access.ts';
import { closeApp } from './close-app.ts';
import { findAgentsFile } from './find-file.ts';
import { type AppUse, loadApp } from './load-app.ts';
import { showErrors } from './show-errors.ts';

/** Where agents are: a file, which is loaded into this process, or a server. */
export const agentsOptions = {
  file: {
    type: 'string',
    short: 'f',
    value: 'file',
    about: 'The file of agents [agents.ts, src/agents.ts, …]',
  },
  url: {
    type: 'string',
    short: 'u',
    value: 'url',
    about: 'A running server instead of a file',
  },
  header: {
    type: 'string',
    multiple: true,
    value: 'name: value',
    about: 'Sent to the server, such as "authorization: Bearer …"',
  },
  owner: {
    type: 'string',
    value: 'id',
    about: 'Whose sessions, where the file’s app serves several owners',
  },
} as const satisfies OptionSpecs;

/** The option that names one of several agents. */
export const agentOption = {
  agent: { type: 'string', short: 'a', value: 'name', about: 'Only this agent' },
} as const satisfies OptionSpecs;

/** Agents that are within reach. */
export interface OpenAgents {
  readonly agents: readonly AgentAccess[];
  readonly modelNote?: string;
  /** How a command line reaches the same agents: `--file agents.ts`. */
  readonly sourceArguments: string;
  /** Whether background work ends with this process. */
  readonly inProcess: boolean;
  close(): Promise<void>;
}

/** Opens what `--file` or `--url` say. */
export async function openAgents(
  options: OptionValues<typeof agentsOptions> & { readonly debug?: boolean },
  { cwd, note }: Pick<Terminal, 'cwd' | 'note'>,
  use: AppUse = 'reading',
): Promise<OpenAgents> {
  const { file, url, owner } = options;
  if (url !== undefined) {
    if (file !== undefined) throw usageError('Give either --file or --url, not both.');
    if (owner !== undefined) throw usageError('--owner is for --file: a server knows its callers.');
    return await openServer(url, options.header ?? []);
  }
  const { app, modelNote } = await loadApp(findAgentsFile(file, cwd), cwd, use);
  showErrors(app, note, options.debug === true);
  return {
    agents: app.agents().map((agent) => localAgent(agent, owner)),
    ...(modelNote !== undefined && { modelNote }),
    sourceArguments:
      (file === undefined ? '' : ` --file ${file}`) +
      (owner === undefined ? '' : ` --owner ${owner}`),
    inProcess: true,
    close: () => closeApp(app),
  };
}

async function openServer(url: string, headers: readonly string[]): Promise<OpenAgents> {
  if (!URL.canParse(url))
    throw usageError(`--url takes an address such as http://127.0.0.1:3000, not "${url}".`);
  const { createClient } = await import('../../client/client.ts');
  const client = createClient({
    url,
    headers: headers.map(toHeader),
    reconnect: { attempts: 3 },
  });
  const known = await client.agents();
  return {
    agents: known.map(({ name }) => client.agent(name)),
    sourceArguments: ` --url ${url}`,
    inProcess: false,
    close: async () => {},
  };
}

function toHeader(text: string): [string, string] {
  const at = text.indexOf(':');
  if (at < 1) throw usageError(`--header takes "name: value", not "${text}".`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

/** The agent of a name, or the only one there is. */
export function pickAgent(agents: readonly AgentAccess[], name: string | undefined): AgentAccess {
  const names = agents.map((each) => each.name).join(', ') || 'none';
  if (name !== undefined) {
    const found = agents.find((each) => each.name === name);
    if (found) return found;
    throw new WaymarkError('NOT_FOUND', `There is no agent "${name}"; there is ${names}.`);
  }
  const [first, ...others] = agents;
  if (first && others.length === 0) return first;
  throw usageError(`Name one of the agents: ${names}.`);
}
