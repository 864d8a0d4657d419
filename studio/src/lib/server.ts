import { type Client, createClient, type RemoteAgent } from '../../../src/client/index.ts';
import { currentOwner } from './place.ts';
import { withSnapshotCache } from './snapshot-cache.ts';

/** Where the server is mounted: one step above the studio. */
export const serverUrl = new URL('..', location.href.split('#')[0]).href.replace(/\/$/, '');

/** Whose sessions a request is about. */
interface Owned {
  readonly owner?: string | undefined;
}

const shown = (): Owned => ({ owner: currentOwner() });

/** The headers of a request. The log of the server leaves out what the studio asks only to stay up to date. */
export function studioHeaders({ owner }: Owned = shown()): Record<string, string> {
  return {
    'x-waymark-studio': '1',
    ...(owner !== undefined && { 'x-waymark-owner': encodeURIComponent(owner) }),
  };
}

/** The server that this studio came from. */
export const server: Client = clientOf({});

/** The server, for the sessions of one owner. */
export function clientOf(owned: Owned = shown()): Client {
  return createClient({ url: serverUrl, headers: studioHeaders(owned) });
}

const agents = new Map<string, RemoteAgent>();

/** An agent by its name, for the sessions of one owner; always the same object. */
export function agentOf(name: string, { owner }: Owned = shown()): RemoteAgent {
  const key = JSON.stringify([name, owner]);
  const known = agents.get(key);
  if (known) return known;
  const agent = withSnapshotCache(clientOf({ owner }).agent(name));
  agents.set(key, agent);
  return agent;
}
