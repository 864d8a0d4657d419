import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';

/** What an agent can do, in the categories of the protocol. */
export async function capabilitiesOf(agent: Agent): Promise<object> {
  const { name, description, metadata } = agent;
  const described = await internalsOf(agent)
    .spec.describe?.()
    .catch(() => undefined);
  const items = (described?.tools ?? []).map((tool) => ({
    name: tool.name,
    description: tool.description ?? '',
    parameters: tool.inputSchema,
  }));
  return {
    identity: { name, type: 'waymark', ...(description !== undefined && { description }) },
    transport: { streaming: true },
    tools: { supported: true, items, parallelCalls: true, clientProvided: true },
    output: { structuredOutput: described?.outputSchema !== undefined },
    state: { snapshots: true, deltas: true, persistentState: true },
    humanInTheLoop: { supported: true, approvals: true, interrupts: true, approveWithEdits: true },
    custom: { connect: metadata.watchable, cancel: metadata.abortable, branches: true },
  };
}
