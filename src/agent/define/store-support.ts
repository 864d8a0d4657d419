import { WaymarkError } from '../../core/error.ts';
import type { Store } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/** What the store of an agent can do besides keeping snapshots. `FAILED_PRECONDITION` if it cannot. */
export function supportOf<Name extends 'runs' | 'abort' | 'timeline' | 'events' | 'spend'>(
  spec: AgentSpec,
  name: Name,
): NonNullable<Store[Name]> {
  const found = fullStore(spec)?.[name];
  if (found !== undefined) return found;
  if (spec.store === undefined) throw noStore(spec);
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The store of agent "${spec.name}" has no ${name}. Use one that has, such as sqliteStore.`,
  );
}

/** A call that needs a store. */
export function noStore(spec: AgentSpec): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Agent "${spec.name}" has no store: the client holds its state. To use this call, pass \`store\` to waymark() or to the agent.`,
  );
}
