import { readFileSync, writeFileSync } from 'node:fs';
import type { Place, Ref } from '../systems/system.ts';

/** A long session that one process left for others. */
export interface LongSession {
  readonly ref: Ref;
  readonly turns: number;
  /** A moment on the way. */
  readonly mark?: Ref;
  readonly markedAt?: number;
}

export function saveLongSession(place: Place, session: LongSession): void {
  writeFileSync(fileOf(place), JSON.stringify(session));
}

export function readLongSession(place: Place): LongSession {
  return JSON.parse(readFileSync(fileOf(place), 'utf8')) as LongSession;
}

// Next to the folder, whose bytes are counted.
function fileOf({ directory }: Place): string {
  return `${directory}.session.json`;
}
