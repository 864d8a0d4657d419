import { eventIdPattern } from '../../protocol/ids.ts';
import type { Operation } from '../../protocol/routes.ts';

interface Parameter {
  readonly name: string;
  readonly description?: string;
  readonly schema: object;
}

/** What a call takes and gives besides its path. */
export interface OperationInfo {
  readonly summary: string;
  readonly query?: readonly Parameter[];
  readonly header?: readonly Parameter[];
  readonly body?: { readonly schema: string; readonly required?: boolean };
  readonly answer: {
    readonly status?: number;
    readonly description: string;
    readonly schema?: string;
    /** It can be had as server-sent events. */
    readonly events?: boolean;
  };
}

const page: readonly Parameter[] = [
  { name: 'limit', schema: { type: 'integer', minimum: 1, maximum: 200, default: 50 } },
  { name: 'cursor', description: '`next` of the page before.', schema: { type: 'string' } },
];

const runPage: readonly Parameter[] = page.map((parameter) =>
  parameter.name === 'limit'
    ? {
        name: 'limit',
        description: 'Absent: all.',
        schema: { type: 'integer', minimum: 1, maximum: 200 },
      }
    : parameter,
);

const messagePage: readonly Parameter[] = [
  {
    name: 'last',
    description: 'Reads only the last messages; `messageRange` says which they are.',
    schema: { type: 'integer', minimum: 1, maximum: 1000 },
  },
  {
    name: 'before',
    description: 'Reads only messages before this position: `messageRange.from` of the page after.',
    schema: { type: 'integer', minimum: 0 },
  },
];

const snapshot = { description: 'The snapshot.', schema: 'Snapshot' } as const;

const artifactHeaders: readonly Parameter[] = [
  { name: 'Range', description: 'One range of bytes.', schema: { type: 'string' } },
  { name: 'If-None-Match', description: 'The ETag that is known.', schema: { type: 'string' } },
];

const artifactBytes = {
  description: 'The text, or the data of the file; 206 with a range, 304 if it is known.',
} as const;

/** The calls of the native dialect, described. */
export const operations: Readonly<Record<string, OperationInfo>> &
  Record<Operation, OperationInfo> = {
  listAgents: {
    summary: 'The agents, and what each can do.',
    answer: { description: 'The agents.', schema: 'AgentList' },
  },
  getAgent: {
    summary: 'One agent.',
    answer: { description: 'The agent.', schema: 'AgentInfo' },
  },
  runTurn: {
    summary: 'Runs one turn.',
    header: [
      {
        name: 'Idempotency-Key',
        description:
          'Request id, as `requestId` in the body: the same id with the same input joins its first run or returns its output, for 24 hours.',
        schema: { type: 'string', minLength: 1, maxLength: 256 },
      },
    ],
    body: { schema: 'TurnRequest' },
    answer: {
      description:
        'The output. With `accept: text/event-stream`: the events `chunk` and `reset` with an id, then `output` or `error`.',
      schema: 'Output',
      events: true,
    },
  },
  connect: {
    summary: 'A WebSocket for many turns: ClientFrame in, ServerFrame out.',
    answer: { status: 101, description: 'The connection is a WebSocket.' },
  },
  listSessions: {
    summary: 'The sessions, newest first.',
    query: [
      ...page,
      {
        name: 'query',
        description:
          'Looks in id, title, metadata and the text of messages. With a transform of the agent: in id, title and metadata.',
        schema: { type: 'string' },
      },
      {
        name: 'failed',
        description: 'Only sessions whose last turn failed.',
        schema: { type: 'boolean' },
      },
      {
        name: 'waiting',
        description: 'Only sessions in which a tool call waits for an answer.',
        schema: { type: 'boolean' },
      },
      {
        name: 'labelled',
        description: 'Only sessions with a labelled snapshot.',
        schema: { type: 'boolean' },
      },
    ],
    answer: { description: 'A page of sessions.', schema: 'SessionPage' },
  },
  getSession: {
    summary: 'A session with its latest state.',
    query: messagePage,
    answer: { description: 'The session.', schema: 'Session' },
  },
  updateSession: {
    summary: 'Changes the title or metadata of a session.',
    body: { schema: 'SessionChange' },
    answer: { description: 'The session.', schema: 'Session' },
  },
  deleteSession: {
    summary:
      'Deletes a session with its snapshots, runs and events, and the sessions of its sub-agents.',
    answer: { status: 204, description: 'It is erased.' },
  },
  getHead: {
    summary: 'The snapshot at the head of a session, with its state.',
    query: messagePage,
    answer: snapshot,
  },
  listSnapshots: {
    summary: 'The timeline of a session, metadata only.',
    query: [
      ...page,
      { name: 'includeOrphaned', schema: { type: 'boolean', default: false } },
      { name: 'newestFirst', schema: { type: 'boolean', default: false } },
    ],
    answer: { description: 'A page of snapshots.', schema: 'SnapshotPage' },
  },
  getArtifact: {
    summary: 'An artifact at the head of a session, as bytes.',
    header: artifactHeaders,
    answer: artifactBytes,
  },
  getSnapshot: {
    summary: 'A snapshot with its state.',
    query: [
      {
        name: 'sessionId',
        description: 'The snapshot is unknown unless it belongs to this session.',
        schema: { type: 'string' },
      },
      ...messagePage,
    ],
    answer: snapshot,
  },
  getSnapshotArtifact: {
    summary: 'An artifact of a snapshot, as bytes.',
    header: artifactHeaders,
    answer: artifactBytes,
  },
  label: { summary: 'Labels a snapshot.', body: { schema: 'SnapshotChange' }, answer: snapshot },
  diff: {
    summary: 'What changed from one snapshot to another.',
    answer: { description: 'The difference.', schema: 'Diff' },
  },
  restore: {
    summary:
      'Moves the head of the session to this snapshot; with `ifHead`, only from that head; with `partial`, to a copy of an aborted run.',
    body: { schema: 'RestoreRequest', required: false },
    answer: snapshot,
  },
  edit: {
    summary:
      'Saves a changed custom state or changed artifacts as a new snapshot, which becomes the head.',
    body: { schema: 'EditRequest' },
    answer: snapshot,
  },
  fork: {
    summary: 'Creates a session that continues from this snapshot.',
    body: { schema: 'ForkRequest', required: false },
    answer: { description: 'The first snapshot of the new session.', schema: 'Snapshot' },
  },
  steer: {
    summary: 'Adds a message to a running turn.',
    body: { schema: 'SteerRequest' },
    answer: {
      description: 'Whether the turn will take it, or has taken it.',
      schema: 'SteerResult',
    },
  },
  abort: {
    summary: 'Stops a run.',
    answer: { description: 'The status after the attempt.', schema: 'AbortResult' },
  },
  watch: {
    summary: 'The events of a run, past and live, and its output.',
    header: [
      {
        name: 'Last-Event-ID',
        description: 'The id of the last event that was seen.',
        schema: { type: 'string', pattern: eventIdPattern },
      },
    ],
    query: [
      {
        name: 'after',
        description: 'As Last-Event-ID, for clients that cannot set headers.',
        schema: { type: 'string', pattern: eventIdPattern },
      },
    ],
    answer: {
      description: 'The events `chunk` and `reset`, then `output` or `error`.',
      events: true,
    },
  },
  getUsage: {
    summary:
      'The tokens and the cost of a session, or of all sessions of the caller with the agent.',
    query: [
      { name: 'session', description: 'Only this session.', schema: { type: 'string' } },
      { name: 'by', schema: { type: 'string', enum: ['agent', 'model', 'day'] } },
      {
        name: 'since',
        description: 'The first day, in UTC.',
        schema: { type: 'string', format: 'date' },
      },
    ],
    answer: { description: 'What was spent.', schema: 'UsageReport' },
  },
  listInterrupts: {
    summary: 'The sessions that wait for the answer of a person, newest first.',
    query: page,
    answer: { description: 'The sessions, with the tool calls that wait.', schema: 'WaitingPage' },
  },
  listAllInterrupts: {
    summary: 'The sessions of all agents that wait for the answer of a person, newest first.',
    query: page,
    answer: { description: 'The sessions, with the tool calls that wait.', schema: 'WaitingPage' },
  },
  listRuns: {
    summary: 'The open runs, oldest first.',
    query: runPage,
    answer: { description: 'The runs.', schema: 'RunList' },
  },
  listDeadRuns: {
    summary: 'Failed runs whose workers died too often, oldest first.',
    query: runPage,
    answer: { description: 'The runs, with the error of each attempt.', schema: 'DeadRunList' },
  },
  retryRun: {
    summary: 'Begins a dead run again, with the inputs it had not done, as a new run.',
    answer: { description: 'The new run.', schema: 'RetryResult' },
  },
};
