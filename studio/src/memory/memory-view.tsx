import { type ReactNode, useState } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { usePlace } from '../lib/place.ts';
import { PageHeader } from '../shell/page-header.tsx';
import { Empty } from '../ui/empty.tsx';
import { Icon } from '../ui/icon.tsx';
import { toast } from '../ui/toasts.tsx';
import { MemoryCard } from './memory-card.tsx';
import { useMemory } from './use-memory.ts';

const pageSize = 50;

/** What agents have learned across sessions: to search, to follow to its source, to change and to delete. */
export function MemoryView({ agents }: { readonly agents: readonly AgentInfo[] }): ReactNode {
  const { owner } = usePlace();
  // Agents that share a memory show the same entries, except those with entries of their own.
  const all = agents.filter(({ metadata }) => metadata.memory !== undefined);
  const [chosen, choose] = useState<string>();
  const agent = all.find(({ name }) => name === chosen) ?? all[0];
  return (
    <main className="runs-view memory-view" aria-label="Memory">
      <PageHeader title="Memory">
        What agents have learned across sessions, with the turn that each entry came from.
      </PageHeader>
      {all.length > 1 && (
        <fieldset className="segments" aria-label="Agent">
          {all.map(({ name, metadata }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === agent?.name}
              title={`Memory “${metadata.memory}”`}
              onClick={() => choose(name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
      )}
      {agent === undefined ? (
        <Empty title="No agent has a memory.">
          <p>
            Declare one with <code>app.defineMemory</code>, and give it to an agent as{' '}
            <code>memory</code>.
          </p>
        </Empty>
      ) : (
        <Entries key={`${agent.name} ${owner ?? ''}`} agent={agent.name} />
      )}
    </main>
  );
}

function Entries({ agent }: { readonly agent: string }): ReactNode {
  const [query, setQuery] = useState('');
  const [limit, setLimit] = useState(pageSize);
  const [listed, lookAgain] = useMemory(agent, query, limit);
  const attempt = async (work: () => Promise<unknown>, done: string): Promise<boolean> => {
    try {
      await work();
      toast({ text: done });
      return true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      toast({ text: reason, isFault: true });
      return false;
    } finally {
      lookAgain();
    }
  };
  return (
    <>
      <label className="search">
        <Icon name="search" size={14} />
        <span className="visually-hidden">Search memory</span>
        <input
          type="search"
          value={query}
          placeholder="Search memory"
          onChange={({ target }) => setQuery(target.value)}
        />
      </label>
      {listed?.fault !== undefined && <p className="fault">{listed.fault}</p>}
      {listed?.items.length === 0 && listed.fault === undefined && (
        <Empty title={query === '' ? 'Nothing is remembered.' : 'Nothing fits these words.'}>
          <p>Entries of the chosen owner are listed here, the newest or the best one first.</p>
        </Empty>
      )}
      <ul className="run-cards" aria-label="Entries">
        {listed?.items.map((entry) => (
          <MemoryCard key={entry.id} agent={agent} entry={entry} attempt={attempt} />
        ))}
      </ul>
      {listed?.isMore && (
        <button
          type="button"
          className="text-button"
          onClick={() => setLimit((before) => before + pageSize)}
        >
          Show older entries
        </button>
      )}
    </>
  );
}
