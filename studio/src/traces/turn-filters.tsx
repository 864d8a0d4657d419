import type { ReactNode } from 'react';
import type { TurnFilter } from '../lib/recorded-turns.ts';
import { Icon } from '../ui/icon.tsx';

/** Words, agent and outcome that a list of turns is narrowed by. */
export function TurnFilters({
  agents,
  filter,
  onChange,
}: {
  readonly agents: readonly string[];
  readonly filter: TurnFilter;
  readonly onChange: (filter: TurnFilter) => void;
}): ReactNode {
  const { query = '', agent, failed = false, detached = false } = filter;
  const shown = failed ? 'Failed' : detached ? 'Background' : 'All';
  return (
    <div className="turn-filters">
      <label className="search">
        <Icon name="search" size={14} />
        <input
          type="search"
          value={query}
          onChange={(event) => onChange({ ...filter, query: event.target.value })}
          placeholder="Text or error"
          aria-label="Filter by words"
        />
      </label>
      <select
        value={agent ?? ''}
        onChange={({ target: { value } }) =>
          onChange({ ...filter, agent: value === '' ? undefined : value })
        }
        aria-label="Agent"
      >
        <option value="">All agents</option>
        {agents.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <fieldset className="segments" aria-label="Show">
        {(['All', 'Background', 'Failed'] as const).map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === shown}
            onClick={() =>
              onChange({ query, agent, failed: name === 'Failed', detached: name === 'Background' })
            }
          >
            {name}
          </button>
        ))}
      </fieldset>
    </div>
  );
}
