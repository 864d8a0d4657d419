import { hasStatus, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { backoff, type Clock } from '../../core/time.ts';
import type { Scope } from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';

/** How long to wait before an unavailable store is asked again, in milliseconds. */
const retryDelays = { baseMs: 100, maxMs: 2_000 };

/** Repeats work until the store is available; rejects when `signal` aborts. */
export async function retryWhileUnavailable<Value>(
  clock: Clock,
  signal: AbortSignal,
  work: () => Promise<Value>,
): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isUnavailable(error)) throw error;
    }
    await clock.sleep(backoff(attempt, retryDelays), signal);
  }
}

/** Whether a store could not be reached. It may have done what it was asked to do all the same. */
export function isUnavailable(error: unknown): boolean {
  return hasStatus(error, 'UNAVAILABLE');
}

/** Whether a request has certainly not reached the store. */
export function wasNotSent(error: unknown): boolean {
  if (!isWaymarkError(error)) return false;
  const { details } = error;
  return isJsonObject(details) && details.written === false;
}

/** The error of a turn that may or may not have been saved. */
export function unknownOutcome(runId: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'UNKNOWN',
    `The store cannot be reached, so it is not known whether the turn was saved. Look up run "${runId}" later, or send the input again with the same request id.`,
    { details: { snapshotId: runId }, cause },
  );
}

/** The error of an id that no snapshot has. If a session has it, the error says so, instead of `otherwise`. */
export async function unknownSnapshot(
  spec: Pick<AgentSpec, 'store'>,
  scope: Scope,
  id: string,
  otherwise: string | WaymarkError,
): Promise<WaymarkError> {
  // The lookup is only for the message.
  const session = await spec.store?.timeline?.getSession(scope, id).catch(() => undefined);
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
    const isUnknown = hasStatus(error, 'NOT_FOUND');
    throw isUnknown ? await unknownSnapshot(spec, scope, id, error) : error;
  }
}
