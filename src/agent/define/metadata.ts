import { toJsonSchema } from '../../core/schema/schema.ts';
import type { AgentMetadata } from '../spec/agent.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';
import { takesInbox } from '../turn/take-steering.ts';

/** What an agent and its store can do. */
export function metadataOf(spec: AgentSpec): AgentMetadata {
  const store = fullStore(spec);
  const claims = store?.runs !== undefined;
  return {
    stateManagement: spec.store === undefined ? 'client' : 'server',
    abortable: store?.abort !== undefined,
    detachable: claims && store?.abort !== undefined,
    watchable: claims && store?.events !== undefined,
    timeline: store?.timeline !== undefined,
    claims,
    requestIds: claims,
    steerable: takesInbox({ spec }),
    ...(store && { store: store.name }),
    ...(spec.stateSchema && { stateSchema: toJsonSchema(spec.stateSchema) }),
  };
}
