import { sessionChange } from '../../protocol/requests.ts';
import { found, notFound } from '../http/errors.ts';
import { flag, messagePage, messagesOf, operation, page, text } from './operation.ts';

const session = { description: 'The session.', schema: 'Session' } as const;

// Whether a session is there; its messages are not needed.
const least = { messages: { last: 1 } };

/** Operations of sessions: list, read, label and delete them, and list their snapshots. */
export const sessionOperations = {
  listSessions: operation({
    summary: 'The sessions, newest first.',
    query: {
      ...page,
      query: text(
        'Looks in id, title, metadata and the text of messages. With a transform of the agent: in id, title and metadata.',
      ),
      failed: flag('Only sessions whose last turn failed.'),
      waiting: flag('Only sessions in which a tool call waits for an answer.'),
      labelled: flag('Only sessions with a labelled snapshot.'),
    },
    answer: { description: 'A page of sessions.', schema: 'SessionPage' },
    run: ({ agent, options, query }) => agent.listSessions({ ...options, ...query }),
  }),

  getSession: operation({
    summary: 'A session with its latest state.',
    query: messagePage,
    answer: session,
    async run({ agent, sessionId, options, query }) {
      const how = { ...options, ...messagesOf(query) };
      return found(await agent.getSession(sessionId, how), 'session', sessionId);
    },
  }),

  updateSession: operation({
    summary: 'Changes the title or metadata of a session.',
    body: { shape: sessionChange, schema: 'SessionChange', what: 'a change of a session' },
    answer: session,
    run: ({ agent, sessionId, body, options }) => agent.updateSession(sessionId, body, options),
  }),

  deleteSession: operation({
    summary:
      'Deletes a session with its snapshots, runs and events, and the sessions of its sub-agents.',
    answer: { status: 204, description: 'It is erased.' },
    async run({ agent, sessionId, options }) {
      if (!(await agent.deleteSession(sessionId, options))) throw notFound('session', sessionId);
      return undefined;
    },
  }),

  getHead: operation({
    summary: 'The snapshot at the head of a session, with its state.',
    query: messagePage,
    answer: { description: 'The snapshot.', schema: 'Snapshot' },
    async run({ agent, sessionId, options, query }) {
      const how = { ...options, ...messagesOf(query) };
      return found(await agent.getSnapshot({ sessionId }, how), 'session', sessionId);
    },
  }),

  listSnapshots: operation({
    summary: 'The timeline of a session, metadata only.',
    query: {
      ...page,
      includeOrphaned: flag(undefined, { default: false }),
      newestFirst: flag(undefined, { default: false }),
    },
    answer: { description: 'A page of snapshots.', schema: 'SnapshotPage' },
    async run({ agent, sessionId, options, query }) {
      const listed = await agent.listSnapshots(sessionId, { ...options, ...query });
      // An empty page may be that of a session without snapshots, or of none.
      if (listed.items.length === 0) {
        found(await agent.getSession(sessionId, { ...options, ...least }), 'session', sessionId);
      }
      return listed;
    },
  }),
};
