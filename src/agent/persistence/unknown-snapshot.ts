import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Scope } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/** The error of an id that no snapshot has. If a session has it, the error says so, instead of `otherwise`. */
export async function unknownSnapshot(
  spec: Pick<AgentSpec, 'store'>,
  scope: Scope,
  id: string,
  otherwise: string | WaymarkError,
): Promise<WaymarkError> {
  // The lookup is only for the message.
  const session = await fullStore(spec)
    ?.timeline?.getSession(scope, id)
    .catch(() => undefined);
  if (session !== undefined) {
    const { headId } = session;
    const head = headId === undefined ? 'It has no snapshot yet.' : `Its head is "${headId}".`;
    const what = `"${id.slice(0, 64)}" is the id of a session, not of a snapshot.`;
    return new WaymarkError('NOT_FOUND', `${what} ${head}`);
  }
  return typeof otherwise === 'string' ? new WaymarkError('NOT_FOUND', otherwise) : otherwise;
}

/** The result of work on a snapshot. If its id is that of a session, the error says so. */
export async function onSnapshot<Value>(
  spec: Pick<AgentSpec, 'store'>,
  scope: Scope,
  id: string,
  work: Promise<Value>,
): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    const isUnknown = isWaymarkError(error) && error.status === 'NOT_FOUND';
    throw isUnknown ? await unknownSnapshot(spec, scope, id, error) : error;
  }
}
