import type { Agent } from '../../agent/spec/agent.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { hasStore, type ServedApp } from '../http/served-app.ts';

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
