import type { Agent } from '../../agent/spec/agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { short } from '../http/errors.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { checkPublicUrl } from '../http/origin.ts';
import { checkSecret } from '../http/secret.ts';
import type { ServedApp } from '../http/served-app.ts';

/** The longest name that the common providers of models accept for a tool. */
const maxNameLength = 64;

/** The agents that are offered, by the name of their tool. */
export function offeredAgents(
  app: ServedApp,
  { agents }: McpServerOptions,
): ReadonlyMap<string, Agent> {
  const offered = new Map<string, Agent>();
  for (const agent of app.agents()) {
    const isOffered = agents ? agents.includes(agent.name) : hasStore(agent);
    if (isOffered) offered.set(toolName(agent.name, offered), agent);
  }
  return offered;
}

/** Refuses options that cannot be meant, when the server starts. */
export function checkMcpOptions(
  app: ServedApp,
  { agents = [], secret, url }: McpServerOptions,
): void {
  checkSecret(secret, 'mcp.secret');
  checkPublicUrl(url, 'mcp.url');
  for (const name of agents) {
    const agent = app.agents().find((each) => each.name === name);
    if (agent && hasStore(agent)) continue;
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      agent
        ? `mcp.agents names ${short(name)}, which has no store. MCP clients hold no state: give the agent a store, or leave it out.`
        : `mcp.agents names ${short(name)}, but the app has no such agent. Define it before the server starts.`,
    );
  }
}

function hasStore({ metadata }: Agent): boolean {
  return metadata.stateManagement === 'server';
}

// Other characters are refused by the providers of the models that call the tool.
function toolName(name: string, taken: ReadonlyMap<string, Agent>): string {
  const plain = name.replace(/[^\w-]/g, '_').slice(0, maxNameLength);
  if (!taken.has(plain)) return plain;
  for (let count = 2; ; count++) {
    const suffix = `_${count}`;
    const other = `${plain.slice(0, maxNameLength - suffix.length)}${suffix}`;
    if (!taken.has(other)) return other;
  }
}
