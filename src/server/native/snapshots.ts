import type { EditChange } from '../../api/agent-api.ts';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import {
  editRequest,
  forkRequest,
  restoreRequest,
  type StateEdit,
  snapshotChange,
  stateEdit,
  steerRequest,
} from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { readBody } from '../http/body.ts';
import { notFound } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import {
  openCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { requestIdOf, underRequestId } from '../stream/turn.ts';
import { checkFields, checkSteerFields, messageQuery } from './request.ts';

/** Snapshots: read, label, compare, go back, branch, stop. */
export function mountSnapshots(router: Router, serverContext: ServerContext): void {
  router.get(routes.getSnapshot.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const sessionId = c.req.query('sessionId');
    const lookup = { snapshotId, ...(sessionId !== undefined && { sessionId }) };
    const { agent, options } = await openCall(serverContext, c, 'getSnapshot', lookup);
    const snapshot = await agent.getSnapshot(lookup, { ...options, ...messageQuery(c) });
    if (!snapshot) throw notFound('snapshot', snapshotId);
    return jsonResponse(snapshot);
  });

  router.patch(routes.label.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { label, ifHead } = await readBody(c, snapshotChange, {
      what: 'change of a snapshot',
      check: (body) => checkFields(body, snapshotChange, 'a change of a snapshot'),
      ...serverContext,
    });
    const { agent, options } = await openCall(serverContext, c, 'label', { snapshotId });
    return jsonResponse(await agent.label(snapshotId, label, { ...options, ...given({ ifHead }) }));
  });

  router.get(routes.diff.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const other = c.req.param('other') ?? '';
    const { agent, options } = await openCall(serverContext, c, 'diff', { snapshotId });
    if (other !== snapshotId) await openCall(serverContext, c, 'diff', { snapshotId: other });
    return jsonResponse(await agent.diff(snapshotId, other, options));
  });

  router.post(routes.restore.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { ifHead, partial } = await readBody(c, restoreRequest, {
      what: 'restore',
      check: (body) => checkFields(body, restoreRequest, 'a restore'),
      ...serverContext,
    });
    const { agent, options } = await openCall(serverContext, c, 'restore', { snapshotId });
    const how = { ...given({ ifHead }), ...(partial !== undefined && { partial }) };
    return jsonResponse(await agent.restore(snapshotId, { ...options, ...how }));
  });

  router.post(routes.fork.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { sessionId, ifHead } = await readBody(c, forkRequest, {
      what: 'fork',
      check: (body) => checkFields(body, forkRequest, 'a fork'),
      ...serverContext,
    });
    const { agent, options } = await openCall(serverContext, c, 'fork', { snapshotId, sessionId });
    const target = given({ sessionId, ifHead });
    return jsonResponse(await agent.fork(snapshotId, { ...options, ...target }));
  });

  router.post(routes.edit.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { change, reason, ifHead } = await readBody(c, editRequest, {
      what: 'edit',
      check: checkEditFields,
      ...serverContext,
    });
    checkEditable(serverContext);
    checkOperations(change);
    const { agent, caller, options } = await openCall(serverContext, c, 'edit', { snapshotId });
    const note = given({ ifHead, reason, by: caller.principal });
    return jsonResponse(
      await agent.edit(snapshotId, change as EditChange, { ...options, ...note }),
    );
  });

  router.post(routes.steer.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const body = await readBody(c, steerRequest, {
      what: 'message',
      check: checkSteerFields,
      ...serverContext,
    });
    const input = underRequestId(body.input, requestIdOf(c), body.requestId);
    const { agent, options } = await openCall(serverContext, c, 'steer', { snapshotId });
    return jsonResponse(await agent.steer(snapshotId, input, { ...options, remote: true }));
  });

  router.post(routes.abort.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const { agent, options } = await openCall(serverContext, c, 'abort', { snapshotId });
    const status = await agent.abort(snapshotId, options);
    if (status === undefined) throw notFound('snapshot', snapshotId);
    return jsonResponse({ snapshotId, status });
  });
}

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
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `A client cannot use "${other.op}" in a customPatch, only add, remove and replace.`,
  );
}

/** State that clients could write is state that tools cannot trust, so a server for several users must say that they may. */
function checkEditable({ options: { auth, edit = auth === undefined } }: ServerContext): void {
  if (edit) return;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    'Clients may not edit the state of sessions on this server. To allow it, serve with `edit: true`, and decide in `authorize` who may.',
  );
}

/** What was sent of these fields. */
function given<Fields extends Readonly<Record<string, string | undefined>>>(
  fields: Fields,
): { readonly [Name in keyof Fields]?: string } {
  const sent = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(sent) as { readonly [Name in keyof Fields]?: string };
}

/** The snapshot id of the path. */
export function snapshotParam(c: RequestContext): string {
  return c.req.param('snapshot') ?? '';
}
