import { readdir, stat } from 'node:fs/promises';
import { WaymarkError } from '../core/error.ts';

/** The result of a backup or restore. */
export interface BackupReport {
  /** Number of sessions in the backup. */
  readonly sessions: number;
}

/** Refuses a target that is there already: a backup overwrites nothing, and neither does a restore. */
export async function checkFree(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return;
  if (found.isDirectory() && (await readdir(path)).length === 0) return;
  throw new WaymarkError(
    'ALREADY_EXISTS',
    `"${path}" exists already and is not overwritten. Name another path, or remove it first.`,
  );
}

/** The error for a source that is no store, or no backup, of the kind. */
export function notThere(what: string, path: string, cause?: unknown): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no ${what} at "${path}".`, { cause });
}
