import { isWaymarkError, type Status } from '../core/error.ts';

/** The exit codes of the command line, for scripts. */
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

/** The meaning of each exit code; shown by `--help`, and listed in docs/cli.md. */
export const exitCodeMeanings: Readonly<Record<number, string>> = {
  [exitCode.ok]: 'success',
  [exitCode.failed]:
    'failure: a failed turn or run, a fault found by verify, an invalid configuration',
  [exitCode.usage]: 'invalid usage, an ambiguous id, or a missing confirmation (--yes)',
  [exitCode.notFound]: 'not found: a session, snapshot, run, agent, file or store',
  [exitCode.conflict]: 'conflict: the session is busy, or the id or folder already exists',
  [exitCode.unavailable]: 'unavailable: a server or store cannot be reached, or a port is in use',
  [exitCode.waiting]: 'a tool call needs an approval or an answer',
  [exitCode.interrupted]: 'interrupted by Ctrl-C, or a confirmation was declined',
};

const byStatus: Partial<Record<Status, number>> = {
  INVALID_ARGUMENT: exitCode.usage,
  NOT_FOUND: exitCode.notFound,
  ABORTED: exitCode.conflict,
  ALREADY_EXISTS: exitCode.conflict,
  UNAVAILABLE: exitCode.unavailable,
  CANCELLED: exitCode.interrupted,
};

export function exitCodeOf(error: unknown): number {
  return (isWaymarkError(error) && byStatus[error.status]) || exitCode.failed;
}
