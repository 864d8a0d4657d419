import type { ReactNode } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { type Place, usePlace } from '../lib/place.ts';
import { useAgentInfo } from '../shell/use-agents.ts';
import { Empty } from '../ui/empty.tsx';
import { SourceCard } from './source-card.tsx';
import { ToolItem } from './tool-item.tsx';
import { useSources } from './use-sources.ts';

/** The tool sources of the app with their state, and the tools of each agent; a tool can be called from here. */
export function ToolsView({ agents }: { readonly agents: readonly AgentInfo[] }): ReactNode {
  const sources = useSources();
  const place = usePlace();
  return (
    <main className="runs-view tools-view" aria-label="Tools">
      <header className="page-header">
        <h1>Tools</h1>
        <p className="quiet">
          Open a tool to run it once. It really runs; its session is empty, and nothing is saved.
        </p>
      </header>
      {sources === 'refused' ? (
        <Empty title="Tools cannot be run here.">
          <p>A server with authentication does not let Studio run tools. Use waymark dev.</p>
        </Empty>
      ) : (
        <>
          {sources !== undefined && sources.length > 0 && (
            <section aria-label="MCP servers and other sources">
              <h2 className="section-title">MCP servers and other sources</h2>
              <ul className="run-cards">
                {sources.map((source) => (
                  <SourceCard key={source.name} source={source} place={place} />
                ))}
              </ul>
            </section>
          )}
          {agents.map((agent) => (
            <AgentTools key={agent.name} agent={agent} place={place} />
          ))}
        </>
      )}
    </main>
  );
}

function AgentTools({
  agent: listed,
  place,
}: {
  readonly agent: AgentInfo;
  readonly place: Place;
}): ReactNode {
  const { name, tools = [], skills = [] } = useAgentInfo(listed);
  if (tools.length === 0) return null;
  return (
    <section aria-label={`Tools of ${name}`}>
      <h2 className="section-title">{name}</h2>
      {skills.length > 0 && (
        <ul className="skill-list" aria-label={`Skills of ${name}`}>
          {skills.map((skill) => (
            <li key={skill.name}>
              <strong>{skill.name}</strong>{' '}
              <span className="chip mono" title={`Hash of its files: ${skill.version}`}>
                {skill.version.slice(0, 8)}
              </span>{' '}
              {skill.origin !== undefined && <span className="quiet">{skill.origin} · </span>}
              {skill.description}
            </li>
          ))}
        </ul>
      )}
      <ul className="run-cards">
        {tools.map((tool) => (
          <ToolItem
            key={tool.name}
            owner={{ agent: name }}
            tool={tool}
            isOpen={place.agent === name && place.tool === tool.name}
          />
        ))}
      </ul>
    </section>
  );
}
