import { useEffect, useState } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { followRuns, pulse } from '../lib/pulse.ts';
import { agentOf, server } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';

/** The agents of the server, read again when it comes back; `undefined` until they are known. */
export function useAgents(): readonly AgentInfo[] | undefined {
  const { returns } = useSource(pulse);
  const [agents, setAgents] = useState<readonly AgentInfo[]>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a server that comes back may have other agents
  useEffect(() => {
    let isCurrent = true;
    server.agents().then(
      (read) => {
        if (!isCurrent) return;
        setAgents(read);
        followRuns(read.filter(({ metadata }) => metadata.claims).map(({ name }) => name));
      },
      // Begins to look for the server, which then is a reason to read again.
      () => followRuns([]),
    );
    return () => {
      isCurrent = false;
    };
  }, [returns]);
  return agents;
}

/** An agent with its model and tools, once they are known. */
export function useAgentInfo(info: AgentInfo): AgentInfo {
  const { returns } = useSource(pulse);
  const [read, setRead] = useState<AgentInfo>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a server that comes back may have another model
  useEffect(() => {
    let isCurrent = true;
    agentOf(info.name)
      .describe()
      .then(
        (described) => isCurrent && setRead(described),
        () => {},
      );
    return () => {
      isCurrent = false;
    };
  }, [info.name, returns]);
  return read?.name === info.name ? read : info;
}
