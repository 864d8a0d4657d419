import type { JsonObject } from '../../../core/json/json.ts';
import type { SessionInfo } from '../../../protocol/session.ts';
import type { Scope } from '../../contract/store.ts';
import { sessionKey } from '../../memory/tables.ts';
import type { Disk } from '../directory/disk.ts';
import type { FileStamp } from '../directory/file-stamp.ts';
import { journalName, runFile, safeName, scopeFolder } from '../directory/layout.ts';
import { Journal, type JournalReader, type Portion } from '../sessions/journal.ts';

/** A session that maintenance has seen. */
export interface SeenSession {
  readonly scope: Scope;
  readonly id: string;
  readonly startedBy?: SessionInfo['startedBy'];
}

/** A family as it was when maintenance looked at it. */
export interface SeenFamily {
  readonly folder: string;
  readonly sessions: readonly SeenSession[];
  /** How many snapshots it had. */
  readonly snapshots: number;
  readonly stamps: ReadonlyMap<string, FileStamp | undefined>;
}

/** A family as it is, under the lock. */
export function seeFamily(
  disk: Disk,
  { folder, snapshots, sessions }: Omit<SeenFamily, 'stamps'>,
): SeenFamily {
  const names = [
    `${folder}/${journalName}`,
    ...sessions.map(({ scope, id }) => runFile(scope, id)),
  ];
  return {
    folder,
    snapshots,
    sessions,
    stamps: new Map(names.map((name) => [name, disk.stamp(name)])),
  };
}

/** Whether nothing has happened to a family since it was looked at: no session of it was changed, claimed or deleted. Under the lock. */
export function isAsSeen(disk: Disk, { stamps }: SeenFamily): boolean {
  return [...stamps].every(([name, seen]) => {
    const found = disk.stamp(name);
    return (
      found?.inode === seen?.inode && found?.size === seen?.size && found?.changed === seen?.changed
    );
  });
}

/** The key of the session that started another one. */
export function starterOf({ scope, startedBy }: SeenSession): string | undefined {
  if (startedBy === undefined) return undefined;
  return sessionKey({ ...scope, agent: startedBy.agent }, startedBy.sessionId);
}

interface SessionLine {
  readonly id?: string;
  readonly startedBy?: SessionInfo['startedBy'];
}

/** Reads from a journal only which sessions it has. */
export class SessionList implements JournalReader {
  readonly folder: string;
  readonly journal: Journal;
  readonly #found = new Map<string, SeenSession>();
  #scope: Scope | undefined;

  constructor(disk: Disk, folder: string) {
    this.folder = folder;
    this.journal = new Journal(disk, `${folder}/${journalName}`, this);
  }

  get sessions(): readonly SeenSession[] {
    return [...this.#found.values()];
  }

  refreshSome(some: Portion): boolean {
    return this.journal.refreshSome(some);
  }

  reset(): void {
    this.#found.clear();
    this.#scope = undefined;
  }

  head({ agent, owner, session }: JsonObject): void {
    if (typeof agent !== 'string' || typeof session !== 'string') return;
    const scope = typeof owner === 'string' ? { agent, owner } : { agent };
    // A folder that was copied by hand has no sessions.
    if (`${scopeFolder(scope)}/${safeName(session)}` === this.folder) this.#scope = scope;
  }

  line(line: JsonObject): void {
    const { id, startedBy } = line.session as SessionLine;
    const scope = this.#scope;
    if (scope === undefined || id === undefined || this.#found.has(id)) return;
    this.#found.set(id, startedBy === undefined ? { scope, id } : { scope, id, startedBy });
  }
}
