/** One operation of the native protocol, as the server, the client and the OpenAPI document take it; path parameters as `:name`. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** The parameters of the query of a GET, else the fields of the body, that a call has among its options. */
  readonly fields?: readonly string[];
}

const ofSession = '/agents/:agent/sessions/:session';
const ofSnapshot = '/agents/:agent/snapshots/:snapshot';
const ofMemory = '/agents/:agent/memory';
const page = ['limit', 'cursor'] as const;
const messages = ['last', 'before'] as const;

/** Every operation of the native protocol by its name. `connect` is a WebSocket; `runTurn` and `watch` answer with SSE. */
export const routes = {
  listAgents: { method: 'GET', path: '/agents' },
  getAgent: { method: 'GET', path: '/agents/:agent' },
  runTurn: { method: 'POST', path: '/agents/:agent/turns' },
  connect: { method: 'GET', path: '/agents/:agent/connect' },
  listSessions: {
    method: 'GET',
    path: '/agents/:agent/sessions',
    fields: [...page, 'query', 'failed', 'waiting', 'labelled'],
  },
  getSession: { method: 'GET', path: ofSession, fields: messages },
  updateSession: { method: 'PATCH', path: ofSession },
  deleteSession: { method: 'DELETE', path: ofSession },
  /** The snapshot at the session's head, with its state. */
  getHead: { method: 'GET', path: `${ofSession}/snapshot`, fields: messages },
  listSnapshots: {
    method: 'GET',
    path: `${ofSession}/snapshots`,
    fields: [...page, 'includeOrphaned', 'newestFirst'],
  },
  /** An artifact at the session's head, as bytes. */
  getArtifact: { method: 'GET', path: `${ofSession}/artifacts/:artifact` },
  getSnapshot: { method: 'GET', path: ofSnapshot, fields: ['sessionId', ...messages] },
  /** An artifact of a snapshot, as bytes. */
  getSnapshotArtifact: { method: 'GET', path: `${ofSnapshot}/artifacts/:artifact` },
  label: { method: 'PATCH', path: ofSnapshot, fields: ['label', 'ifHead'] },
  /** The files of the workspace. */
  listFiles: { method: 'GET', path: `${ofSnapshot}/files`, fields: page },
  /** A saved file, or a file of the workspace, as bytes. */
  openFile: { method: 'GET', path: `${ofSnapshot}/files/:file`, fields: ['workspace'] },
  diff: { method: 'GET', path: `${ofSnapshot}/diff/:other`, fields: ['workspace'] },
  restore: {
    method: 'POST',
    path: `${ofSnapshot}/restore`,
    fields: ['ifHead', 'partial', 'workspace'],
  },
  /** The effects in other systems that a restore with `undo` undoes. */
  planUndo: { method: 'GET', path: `${ofSnapshot}/undo` },
  /** A restore that undoes effects first. */
  undo: {
    method: 'POST',
    path: `${ofSnapshot}/undo`,
    fields: ['undo', 'force', 'ifHead', 'workspace'],
  },
  fork: { method: 'POST', path: `${ofSnapshot}/fork`, fields: ['sessionId', 'ifHead'] },
  /** A new snapshot with an edited state. */
  edit: { method: 'POST', path: `${ofSnapshot}/edit`, fields: ['change', 'reason', 'ifHead'] },
  /** The entries of the agent's memory. */
  listMemory: {
    method: 'GET',
    path: ofMemory,
    fields: [...page, 'query', 'asOf'],
  },
  memoryHistory: { method: 'GET', path: `${ofMemory}/:entry` },
  addMemory: { method: 'POST', path: ofMemory, fields: ['value'] },
  updateMemory: { method: 'PATCH', path: `${ofMemory}/:entry`, fields: ['value'] },
  /** Deletes an entry with all its versions. */
  forgetMemory: { method: 'DELETE', path: `${ofMemory}/:entry` },
  /** What the turn of a snapshot knew, and what it has learned. */
  memoryOfTurn: { method: 'GET', path: `${ofSnapshot}/memory` },
  abort: { method: 'POST', path: `${ofSnapshot}/abort` },
  /** Adds a message to a running turn. */
  steer: { method: 'POST', path: `${ofSnapshot}/steer` },
  watch: { method: 'GET', path: `${ofSnapshot}/events` },
  /** The tokens and cost of a session (`?session=`) or of all sessions of the agent. */
  getUsage: { method: 'GET', path: '/agents/:agent/usage', fields: ['session', 'by', 'since'] },
  /** The sessions that wait for the answer of a person. */
  listInterrupts: { method: 'GET', path: '/agents/:agent/interrupts', fields: page },
  /** The same of all agents. */
  listAllInterrupts: { method: 'GET', path: '/interrupts' },
  listRuns: { method: 'GET', path: '/agents/:agent/runs', fields: page },
  /** Failed runs whose workers died too often. */
  listDeadRuns: { method: 'GET', path: '/agents/:agent/dead-runs', fields: page },
  /** Begins a dead run again, as a new one. */
  retryRun: { method: 'POST', path: `${ofSnapshot}/retry` },
} as const satisfies Record<string, Route>;

/** The operations that a caller can be authorized for; the same names in every protocol. */
export type Operation = keyof typeof routes;

type FieldOf<R> = R extends { readonly fields: readonly (infer Field)[] } ? Field : never;

/** The options of calls that a query or a body has. */
export type Fields = { readonly [Field in FieldOf<(typeof routes)[Operation]>]?: unknown };
