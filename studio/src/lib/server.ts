import { type Client, createClient, type RemoteAgent } from '../../../src/client/index.ts';
import { withSnapshotCache } from './snapshot-cache.ts';

/** Where the server is mounted: one step above the studio. */
export const serverUrl = new URL('..', location.href.split('#')[0]).href.replace(/\/$/, '');

/** The server that this studio came from. Its log leaves out what the studio asks only to stay up to date. */
export const server: Client = createClient({
  url: serverUrl,
  headers: { 'x-waymark-studio': '1' },
});

const agents = new Map<string, RemoteAgent>();

/** An agent by its name, always the same object. */
export function agentOf(name: string): RemoteAgent {
  const known = agents.get(name);
  if (known) return known;
  const agent = withSnapshotCache(server.agent(name));
  agents.set(name, agent);
  return agent;
}
