import {
  failedPrecondition,
  isWaymarkError,
  type Status,
  WaymarkError,
  type WaymarkErrorOptions,
} from '../../core/error.ts';

export function notFound(what: 'snapshot' | 'session', id: string): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `There is no ${what} ${JSON.stringify(id.slice(0, 80))} of this agent and owner in the store.`,
  );
}

export function busy(sessionId: string, runId: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Session "${sessionId}" is busy with run "${runId}". Try again when the run has ended, or abort it. To let turns wait for each other, define the agent with \`concurrency: 'wait'\`.`,
    { details: { running: runId } },
  );
}

/** Whether a call was refused because a run works on the session. */
export function isBusy(error: unknown): boolean {
  return runningOf(error) !== undefined;
}

/** The run that was in the way of a call. */
export function runningOf(error: unknown): string | undefined {
  if (!isWaymarkError(error) || error.status !== 'ABORTED') return undefined;
  const { details } = error;
  if (typeof details !== 'object' || details === null || !('running' in details)) return undefined;
  return typeof details.running === 'string' ? details.running : undefined;
}

export function headMoved(headId: string | null): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    'The head of the session is not the one you expected. Read the session again, then retry.',
    { details: { headId } },
  );
}

/** Stale attempt (fencing token): another worker has taken over the run. */
export function notHeld(runId: string, attempt: number): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Attempt ${attempt} no longer holds run "${runId}": it has ended, or another worker took it over.`,
  );
}

export function taken(snapshotId: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `The snapshot id "${snapshotId}" is taken. Use a new id for every snapshot.`,
  );
}

export function sessionExists(sessionId: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `The session id "${sessionId}" is taken. Choose another id.`,
  );
}

export function notSucceeded(snapshotId: string, status: string): WaymarkError {
  return failedPrecondition(
    `Snapshot "${snapshotId}" is ${status}. A session can continue only from a succeeded snapshot.`,
  );
}

export function stillRunning(snapshotId: string): WaymarkError {
  return failedPrecondition(
    `Snapshot "${snapshotId}" is still being worked on. Wait until its run has ended.`,
  );
}

/** The error for damaged stored rows, which our own code trusts and fails on. */
export function toReadError(error: unknown): unknown {
  const isStumble =
    error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError;
  if (!isStumble) return error;
  return new WaymarkError(
    'DATA_LOSS',
    `A stored row cannot be read: the database was damaged or changed by hand (${error.message}). Restore it from a backup.`,
    { cause: error },
  );
}

export function noSharedTransactions(): WaymarkError {
  return failedPrecondition('This store has no shared transactions. Use the Postgres store.');
}

export function releasedDetached(): WaymarkError {
  return failedPrecondition(
    'A detached run ends with a commit or an abort: its pending snapshot needs a terminal status.',
  );
}

export function handedOverAttached(): WaymarkError {
  return failedPrecondition(
    'An attached run cannot be handed over: only its caller can continue it.',
  );
}

export function storeClosed(): WaymarkError {
  return failedPrecondition('The store has been closed.');
}

/**
 * An error of a store whose message names paths, hosts or what a driver said. It is visible in process; remote clients
 * get a general message for the status.
 */
export function storeFault(
  status: Status,
  message: string,
  options: Pick<WaymarkErrorOptions, 'cause' | 'details'> = {},
): WaymarkError {
  return new WaymarkError(status, message, {
    ...options,
    publicMessage: publicMessages[status] ?? broken,
  });
}

const broken = 'The store of this agent failed.';

const publicMessages: Partial<Record<Status, string>> = {
  UNAVAILABLE: 'The store of this agent is not available at the moment. Try again.',
  RESOURCE_EXHAUSTED: 'The store of this agent has no room left.',
  PERMISSION_DENIED: 'The store of this agent refused access to the server.',
  FAILED_PRECONDITION: 'The store of this agent cannot be used as it is configured.',
  DATA_LOSS: 'Stored data of this agent is damaged.',
  ALREADY_EXISTS: 'Something with this id exists already.',
  INVALID_ARGUMENT: 'The store of this agent cannot keep this value.',
  ABORTED: 'The store of this agent was changed by something else. Try again.',
};
