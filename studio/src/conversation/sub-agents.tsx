import type { ReactNode } from 'react';
import { type SubAgentView, useAgentValue } from '../../../src/react/index.ts';
import { toProgress } from '../lib/progress.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { useWorkbench } from '../shell/workbench.tsx';
import { MarkIcon } from '../ui/mark.tsx';

/** The messages of sub-agents, while the turn waits for them. Afterwards they are in the tool calls. */
export function SubAgents(): ReactNode {
  const { store } = useWorkbench();
  const subAgents = useAgentValue(store, (view) => view.subAgents);
  return subAgents.map((each) => <SubAgent key={`${each.agent} ${each.ref}`} subAgent={each} />);
}

function SubAgent({ subAgent }: { readonly subAgent: SubAgentView }): ReactNode {
  const { agent, messages, text, status } = subAgent;
  const { figures, text: said } = toProgress(status);
  const tool = messages.at(-1)?.toolCalls.at(-1);
  const doing = tool ? `uses ${tool.name}` : 'is working';
  return (
    <section className="sub-agent" aria-label={`${agent} at work`}>
      <header>
        <MarkIcon kind="pending" />
        <span className="sub-agent-name">{agent}</span>
        <span className="quiet" dir="auto">
          {[figures, said].filter(Boolean).join(' · ') || doing}
        </span>
      </header>
      {text !== '' && <Markdown text={text} />}
    </section>
  );
}
