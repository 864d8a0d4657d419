import { isWaymarkError, type Status } from '../core/error.ts';

/** What a script can read off the end of a command; docs/cli.md lists them. */
export const exitCode = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  unavailable: 5,
  waiting: 6,
  interrupted: 130,
} as const;

const byStatus: Partial<Record<Status, number>> = {
  INVALID_ARGUMENT: exitCode.usage,
  NOT_FOUND: exitCode.notFound,
  ABORTED: exitCode.conflict,
  ALREADY_EXISTS: exitCode.conflict,
  UNAVAILABLE: exitCode.unavailable,
  CANCELLED: exitCode.interrupted,
};

/** The exit code of an error. */
export function exitCodeOf(error: unknown): number {
  return (isWaymarkError(error) && byStatus[error.status]) || exitCode.failed;
}
