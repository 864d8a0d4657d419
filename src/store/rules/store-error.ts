import { type Status, WaymarkError, type WaymarkErrorOptions } from '../../core/error.ts';

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
