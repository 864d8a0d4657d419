import { basename, extname } from 'node:path';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Disk } from '../disk.ts';
import { requestFile, requestsFolder, runFile, runsFolder } from '../layout.ts';
import { namesIn, type OldLine, readLines } from './old-lines.ts';

/** A file of a run, of its events or of a request: its first line, and all. */
export interface OldFile {
  /** Its name without folder and ending. */
  readonly id: string;
  readonly head: JsonObject;
  readonly lines: readonly OldLine[];
}

type Kind = 'runs' | 'events' | 'requests' | 'dead';

/** The files of runs, events, request ids and dead letters, by their sessions. */
export class OldRuns {
  /** The bytes of files that do not say whose they are, by the names under which `verify` finds them. */
  readonly damaged = new Map<string, Buffer>();
  readonly #files = new Map<string, OldFile[]>();

  constructor(disk: Disk) {
    this.#read(disk, 'runs', runsFolder, runFile);
    this.#read(disk, 'events', 'events', runFile);
    this.#read(disk, 'requests', requestsFolder, requestFile);
    this.#read(disk, 'dead', 'dead', runFile);
  }

  /** The files of a session. */
  filesOf(kind: Kind, whose: JsonObject, session: string): readonly OldFile[] {
    return this.#files.get(keyOf(kind, { ...whose, session })) ?? [];
  }

  #read(disk: Disk, kind: Kind, folder: string, newName: (id: string) => string): void {
    const isObject = kind === 'requests' || kind === 'dead';
    for (const name of namesIn(disk, folder)) {
      const id = basename(name, extname(name));
      const lines = readLines(disk, name, { isObject });
      const [first] = lines;
      // The file of a run that has ended, or one that a process died with.
      if (first === undefined) continue;
      if (first.content === undefined) this.damaged.set(newName(id), first.bytes);
      else {
        const key = keyOf(kind, first.content);
        const files = this.#files.get(key) ?? [];
        this.#files.set(key, [...files, { id, head: first.content, lines }]);
      }
    }
  }
}

function keyOf(kind: Kind, { agent, owner, session }: JsonObject): string {
  return JSON.stringify([kind, agent, owner ?? null, session]);
}
