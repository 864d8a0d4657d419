import * as v from 'valibot';
import { isWaymarkError } from '../../../core/error.ts';
import type { Scope } from '../../contract/store.ts';
import { toLine } from '../directory/checked-line.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { format, parseSealed } from '../directory/format.ts';
import { safeName, scopeFolder } from '../directory/layout.ts';

const pointer = v.object({
  waymark: v.number(),
  session: v.string(),
  folder: v.pipe(v.string(), v.regex(/^[a-z0-9_~-]+$/)),
});

export interface ForkPointer extends v.InferOutput<typeof pointer> {}

/** The file that says in which folder a fork lives. */
export function pointerFile(scope: Scope, sessionId: string): string {
  return `${scopeFolder(scope)}/${safeName(sessionId)}.json`;
}

/** The folder that a pointer names; `undefined` when there is no such file. */
export function readPointer(disk: Disk, scope: Scope, sessionId: string): string | undefined {
  const folder = scopeFolder(scope);
  const found = parsePointer(disk, pointerFile(scope, sessionId));
  return found && `${folder}/${found.folder}`;
}

/** What a pointer says: which session lives in which folder beside it. */
export function parsePointer(disk: Disk, name: string): ForkPointer | undefined {
  const text = disk.readText(name);
  if (text === undefined) return undefined;
  try {
    const content = parseSealed(text, name);
    return content && v.parse(pointer, content);
  } catch (cause) {
    if (isWaymarkError(cause) && cause.status !== 'INVALID_ARGUMENT') throw cause;
    throw dataLoss(name, 'it names no folder', cause);
  }
}

export function writePointer(disk: Disk, scope: Scope, sessionId: string, folder: string): void {
  const base = folder.slice(folder.lastIndexOf('/') + 1);
  const content = { waymark: format, session: sessionId, folder: base };
  disk.replace(pointerFile(scope, sessionId), `${toLine(content)}\n`);
}
