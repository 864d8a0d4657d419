/** One call of the native dialect; path parameters as `:name`. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
}

/** Every call of the native dialect by its name. `connect` is a WebSocket; `runTurn` and `watch` answer with SSE. */
export const routes = {
  listAgents: { method: 'GET', path: '/agents' },
  getAgent: { method: 'GET', path: '/agents/:agent' },
  runTurn: { method: 'POST', path: '/agents/:agent/turns' },
  connect: { method: 'GET', path: '/agents/:agent/connect' },
  listSessions: { method: 'GET', path: '/agents/:agent/sessions' },
  getSession: { method: 'GET', path: '/agents/:agent/sessions/:session' },
  updateSession: { method: 'PATCH', path: '/agents/:agent/sessions/:session' },
  deleteSession: { method: 'DELETE', path: '/agents/:agent/sessions/:session' },
  /** The snapshot at the session's head, with its state. */
  getHead: { method: 'GET', path: '/agents/:agent/sessions/:session/snapshot' },
  listSnapshots: { method: 'GET', path: '/agents/:agent/sessions/:session/snapshots' },
  /** An artifact at the session's head, as bytes. */
  getArtifact: { method: 'GET', path: '/agents/:agent/sessions/:session/artifacts/:artifact' },
  getSnapshot: { method: 'GET', path: '/agents/:agent/snapshots/:snapshot' },
  /** An artifact of a snapshot, as bytes. */
  getSnapshotArtifact: {
    method: 'GET',
    path: '/agents/:agent/snapshots/:snapshot/artifacts/:artifact',
  },
  label: { method: 'PATCH', path: '/agents/:agent/snapshots/:snapshot' },
  diff: { method: 'GET', path: '/agents/:agent/snapshots/:snapshot/diff/:other' },
  restore: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/restore' },
  fork: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/fork' },
  /** A new snapshot with an edited state. */
  edit: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/edit' },
  abort: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/abort' },
  /** Adds a message to a running turn. */
  steer: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/steer' },
  watch: { method: 'GET', path: '/agents/:agent/snapshots/:snapshot/events' },
  /** The usage of a session (`?session=`) or of all sessions of the agent. */
  getUsage: { method: 'GET', path: '/agents/:agent/usage' },
  /** The sessions that wait for the answer of a person. */
  listInterrupts: { method: 'GET', path: '/agents/:agent/interrupts' },
  /** The same of all agents. */
  listAllInterrupts: { method: 'GET', path: '/interrupts' },
  /** The open runs. */
  listRuns: { method: 'GET', path: '/agents/:agent/runs' },
  /** Failed runs whose workers died too often. */
  listDeadRuns: { method: 'GET', path: '/agents/:agent/dead-runs' },
  /** Begins a dead run again, as a new one. */
  retryRun: { method: 'POST', path: '/agents/:agent/snapshots/:snapshot/retry' },
} as const satisfies Record<string, Route>;

/** The operation of a request; the same names in every protocol. */
export type Operation = keyof typeof routes;
