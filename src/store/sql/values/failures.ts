import { WaymarkError } from '../../../core/error.ts';

export function notFound(what: 'snapshot' | 'session', id: string): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `There is no ${what} ${JSON.stringify(id.slice(0, 80))} of this agent and owner in the store.`,
  );
}

/** A session is being worked on. */
export function busy(sessionId: string, worker: string, runId: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Session "${sessionId}" is being worked on by "${worker}". Try again when the run has ended, or abort it.`,
    { details: { running: runId } },
  );
}

export function headMoved(headId: string | null): WaymarkError {
  return new WaymarkError('ABORTED', 'The session has moved on since it was read. Read it again.', {
    details: { headId },
  });
}

/** Whoever comes with another attempt than the current one has lost the run. */
export function notHeld(runId: string, attempt: number): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Attempt ${attempt} no longer holds run "${runId}": it has ended, or another worker took it over.`,
  );
}

export function taken(snapshotId: string): WaymarkError {
  return new WaymarkError('ALREADY_EXISTS', `The snapshot id "${snapshotId}" is taken.`);
}

export function sessionExists(sessionId: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `There is a session "${sessionId}" already. Choose another id.`,
  );
}

export function otherSession(snapshotId: string, of: string, given: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `Snapshot "${snapshotId}" belongs to session "${of}", not to "${given}".`,
  );
}

export function notSucceeded(snapshotId: string, status: string): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Snapshot "${snapshotId}" is ${status}. Only a succeeded one can be gone on from.`,
  );
}

export function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}

export function precondition(message: string): WaymarkError {
  return new WaymarkError('FAILED_PRECONDITION', message);
}
