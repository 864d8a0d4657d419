import type { EditChange } from '../../api/agent-api.ts';
import { invalid, WaymarkError } from '../../core/error.ts';
import { defined, isJsonObject, type Json } from '../../core/json/json.ts';
import {
  editRequest,
  forkRequest,
  restoreRequest,
  type StateEdit,
  sessionChange,
  snapshotChange,
  stateEdit,
  steerRequest,
  undoRequest,
} from '../../protocol/requests.ts';
import { found, jsonResponse, notFound } from '../http/answer.ts';
import { lastMessageOnly, openCall, type RequestContext } from '../http/server-context.ts';
import { requestIdOf, underRequestId } from '../stream/turn.ts';
import { checkFields, checkSteerFields } from './known-fields.ts';
import {
  flag,
  messagePage,
  type NativeOperation,
  operation,
  page,
  readQuery,
  text,
} from './operation.ts';

const session = { description: 'The session.', schema: 'Session' } as const;
const snapshot = { description: 'The snapshot.', schema: 'Snapshot' } as const;

const diffQuery = {
  workspace: {
    description:
      'Whether files of the workspace are compared. `now`: the files in the folder now, in the place of those of the first snapshot.',
    schema: { type: 'string', enum: ['true', 'false', 'now'], default: 'true' },
    read: (given: string | undefined): boolean | 'now' | undefined => {
      if (given === undefined || given === 'now') return given;
      if (given === 'true' || given === 'false') return given === 'true';
      throw invalid('`workspace` must be "true", "false" or "now".');
    },
  },
};

/**
 * Operations of sessions: list, read, label and delete them. Of their snapshots: list, read, label, compare, restore, fork and
 * edit them, and steer or stop their runs.
 */
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
    run: ({ agent, options }) => agent.listSessions(options),
  }),

  getSession: operation({
    summary: 'A session with its latest state.',
    query: messagePage,
    answer: session,
    run: async ({ agent, sessionId, options }) =>
      found(await agent.getSession(sessionId, options), 'session', sessionId),
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
    answer: snapshot,
    run: async ({ agent, sessionId, options }) =>
      found(await agent.getSnapshot({ sessionId }, options), 'session', sessionId),
  }),

  listSnapshots: operation({
    summary: 'The timeline of a session, metadata only.',
    query: {
      ...page,
      includeOrphaned: flag(undefined, { default: false }),
      newestFirst: flag(undefined, { default: false }),
    },
    answer: { description: 'A page of snapshots.', schema: 'SnapshotPage' },
    async run({ agent, sessionId, options }) {
      const listed = await agent.listSnapshots(sessionId, options);
      // An empty page may be that of a session without snapshots, or of none.
      if (listed.items.length > 0) return listed;
      const { owner, signal } = options;
      const how = { ...defined({ owner, signal }), ...lastMessageOnly };
      found(await agent.getSession(sessionId, how), 'session', sessionId);
      return listed;
    },
  }),

  getSnapshot: operation({
    summary: 'A snapshot with its state.',
    query: {
      sessionId: text('The snapshot is unknown unless it belongs to this session.'),
      ...messagePage,
    },
    answer: snapshot,
    subject: (c) => ({ sessionId: c.req.query('sessionId') }),
    async run({ agent, snapshotId, options: { sessionId, ...options } }) {
      const lookup = { snapshotId, ...defined({ sessionId }) };
      return found(await agent.getSnapshot(lookup, options), 'snapshot', snapshotId);
    },
  }),

  label: operation({
    summary: 'Labels a snapshot.',
    body: { shape: snapshotChange, schema: 'SnapshotChange', what: 'a change of a snapshot' },
    answer: snapshot,
    run: ({ agent, snapshotId, body: { label, ...how }, options }) =>
      agent.label(snapshotId, label, { ...options, ...how }),
  }),

  diff: {
    summary: 'What changed from one snapshot to another.',
    query: diffQuery,
    answer: { description: 'The difference.', schema: 'Diff' },
    async respond(c) {
      const { snapshot: from = '', other = '' } = c.req.param() as Partial<Record<string, string>>;
      const { agent, options, caller } = await openCall(c, 'diff', { snapshotId: from });
      if (other !== from) await openCall(c, 'diff', { snapshotId: other });
      const how = defined({ context: caller.context, ...readQuery(c, diffQuery) });
      return jsonResponse(await agent.diff(from, other, { ...options, ...how }));
    },
  } satisfies NativeOperation,

  restore: operation({
    summary:
      'Moves the head of the session to this snapshot, and restores the files of a workspace unless `workspace` is false; with `ifHead`, only from that head; with `partial`, to a copy of an aborted run.',
    body: { shape: restoreRequest, schema: 'RestoreRequest', what: 'a restore', required: false },
    answer: snapshot,
    subject: (_, body) => ({ workspace: body?.workspace !== false }),
    run: ({ agent, caller: { context }, snapshotId, body, options }) =>
      agent.restore(snapshotId, { ...options, ...body, ...(context && { context }) }),
  }),

  planUndo: operation({
    summary: 'The effects in other systems after this snapshot, and whether they can be undone.',
    answer: { description: 'The plan.', schema: 'UndoPlan' },
    run: ({ agent, snapshotId, options }) => agent.planUndo(snapshotId, options),
  }),

  undo: operation({
    summary: 'Undoes the effects of a plan, and then moves the head to this snapshot.',
    body: { shape: undoRequest, schema: 'UndoRequest', what: 'an undo' },
    answer: snapshot,
    subject: (_, { workspace }) => ({ workspace: workspace !== false }),
    run({ agent, caller, snapshotId, body: { undo, ...body }, options }) {
      const how = { ...options, ...body, ...defined({ context: caller.context }) };
      return agent.restore(snapshotId, { ...how, undo: undo === true ? undo : { id: undo } });
    },
  }),

  fork: operation({
    summary: 'Creates a session that continues from this snapshot.',
    body: { shape: forkRequest, schema: 'ForkRequest', what: 'a fork', required: false },
    answer: { description: 'The first snapshot of the new session.', schema: 'Snapshot' },
    subject: (_, { sessionId }) => ({ sessionId }),
    run: ({ agent, snapshotId, body, options }) => agent.fork(snapshotId, { ...options, ...body }),
  }),

  edit: operation({
    summary:
      'Saves a changed custom state or changed artifacts as a new snapshot, which becomes the head.',
    body: { shape: editRequest, schema: 'EditRequest', what: 'an edit', check: checkEditFields },
    answer: snapshot,
    run({ c, agent, caller, snapshotId, body, options }) {
      const { change, ...note } = body;
      checkEditable(c);
      checkOperations(change);
      const how = { ...options, ...note, ...defined({ by: caller.principal }) };
      return agent.edit(snapshotId, change as EditChange, how);
    },
  }),

  steer: operation({
    summary: 'Adds a message to a running turn.',
    body: {
      shape: steerRequest,
      schema: 'SteerRequest',
      what: 'a message',
      check: checkSteerFields,
    },
    answer: {
      description: 'Whether the turn will take it, or has taken it.',
      schema: 'SteerResult',
    },
    run({ c, agent, snapshotId, body, options }) {
      const input = underRequestId(body.input, requestIdOf(c), body.requestId);
      return agent.steer(snapshotId, input, { ...options, remote: true });
    },
  }),

  abort: operation({
    summary: 'Stops a run.',
    answer: { description: 'The status after the attempt.', schema: 'AbortResult' },
    async run({ agent, snapshotId, options }) {
      const status = await agent.abort(snapshotId, options);
      return { snapshotId, status: found(status, 'snapshot', snapshotId) };
    },
  }),
};

function checkEditFields(body: Json): void {
  const ofChange = 'It is a field of `change`.';
  const hints = Object.fromEntries(Object.keys(stateEdit.entries).map((name) => [name, ofChange]));
  checkFields(body, editRequest, 'an edit', hints);
  if (isJsonObject(body)) checkFields(body.change, stateEdit, '`change`');
}

// The other operations read the state, of which the agent's `transform` may hide a part.
function checkOperations({ customPatch = [] }: StateEdit): void {
  const other = customPatch.find(({ op }) => !['add', 'remove', 'replace'].includes(op));
  if (other === undefined) return;
  throw invalid(
    `A client cannot use "${other.op}" in a customPatch, only add, remove and replace.`,
  );
}

/** State that clients could write is state that tools cannot trust, so a server for several users must say that they may. */
function checkEditable(c: RequestContext): void {
  const { auth, edit = auth === undefined } = c.get('server').options;
  if (edit) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Clients may not edit the state of sessions on this server. To allow it, serve with `edit: true`, and decide in `authorize` who may.',
  );
}
