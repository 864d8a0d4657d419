import { WaymarkError } from '../../core/error.ts';
import type { RequestRecord } from '../contract/store.ts';

/** The refusal of a claim under a request id that belongs to another run. */
export function requestTaken(
  { runId, sessionId, digest }: RequestRecord & { readonly digest: string },
  given: string,
): WaymarkError {
  if (digest === given) {
    return new WaymarkError(
      'ALREADY_EXISTS',
      `This request was accepted before, as run "${runId}".`,
      {
        details: { request: { runId, sessionId } },
      },
    );
  }
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `This request id was used before with another input, for run "${runId}". Use a new id for a new request.`,
    { details: { snapshotId: runId } },
  );
}
