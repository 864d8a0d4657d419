import { WaymarkError } from '../../core/error.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import { oneLine } from '../text/safe.ts';
import type { AgentAccess } from './agent-access.ts';
import { allPages } from './all-pages.ts';
import { type Candidate, matchPrefix } from './match-prefix.ts';
import { pickAgent } from './open-agents.ts';
import { orNothing } from './or-nothing.ts';

/** A session and the agent, or the scope, that it was found in. */
export interface FoundSession<Place> {
  readonly place: Place;
  readonly session: SessionInfo;
}

/** How sessions are read in one place: an agent, or a scope of a store. */
export interface SessionReader<Place> {
  readonly place: Place;
  readonly name: string;
  get(sessionId: string): Promise<SessionInfo | undefined>;
  list(query: string, cursor: string | undefined): Promise<Page<SessionInfo>>;
}

/** The session with this id, or the only one whose id starts with it, of any agent. */
export async function findSession(
  agents: readonly AgentAccess[],
  given: string,
  name?: string,
): Promise<{ readonly agent: AgentAccess; readonly session: SessionInfo }> {
  const chosen = name === undefined ? agents : [pickAgent(agents, name)];
  const found = await lookUpSession(chosen.map(agentReader), given);
  if (found === undefined)
    throw noSession(
      given,
      '"waymark sessions" lists them. For a session of an owner, use --owner, or --header with --url.',
    );
  return { agent: found.place, session: found.session };
}

/** Reads the sessions of an agent. */
export function agentReader(agent: AgentAccess): SessionReader<AgentAccess> {
  return {
    place: agent,
    name: agent.name,
    get: async (id) => (await orNothing(agent.getSession(id))) as SessionInfo | undefined,
    list: async (query, cursor) =>
      (await orNothing(
        agent.listSessions({ query, limit: 200, ...(cursor !== undefined && { cursor }) }),
      )) ?? { items: [] },
  };
}

/** As {@link findSession}, in any place; `undefined` when there is none. */
export async function lookUpSession<Place>(
  readers: readonly SessionReader<Place>[],
  given: string,
): Promise<FoundSession<Place> | undefined> {
  const exact: Candidate<FoundSession<Place>>[] = [];
  for (const reader of readers) {
    const session = await reader.get(given);
    if (session !== undefined) exact.push(candidate(reader, session));
  }
  if (exact.length > 0) return matchPrefix(given, 'session', exact);
  const lists = await Promise.all(readers.map((reader) => startingWith(reader, given)));
  return matchPrefix(given, 'session', lists.flat());
}

/** What an unknown session is answered with. */
export function noSession(given: string, hint: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no session "${oneLine(given, 80)}". ${hint}`);
}

async function startingWith<Place>(
  reader: SessionReader<Place>,
  prefix: string,
): Promise<Candidate<FoundSession<Place>>[]> {
  if (prefix === '') return [];
  const sessions = await allPages((cursor) => reader.list(prefix, cursor));
  // The query also finds titles and metadata.
  return sessions
    .filter(({ sessionId }) => sessionId.startsWith(prefix))
    .map((session) => candidate(reader, session));
}

function candidate<Place>(
  { place, name }: SessionReader<Place>,
  session: SessionInfo,
): Candidate<FoundSession<Place>> {
  return {
    id: session.sessionId,
    about: [name, session.title ?? ''],
    value: { place, session },
  };
}
