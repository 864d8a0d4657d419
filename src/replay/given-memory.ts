import type { AgentSpec } from '../agent/contract/spec.ts';
import { scopeFor } from '../agent/memory/definition.ts';
import { indexOf } from '../agent/memory/scope-index.ts';
import { defined, type JsonObject } from '../core/json/json.ts';
import type { SessionExport } from '../session/export-session.ts';
import type { MemoryExport, MemoryVersion } from '../store/contract/store.ts';

/** Where the entries of recorded turns are. */
interface Recorded {
  readonly spec: Pick<AgentSpec, 'memory' | 'name'>;
  readonly document: SessionExport;
  /** The owner whose sessions are replayed. */
  readonly owner: string | undefined;
  readonly context: JsonObject;
}

/** The versions that a recorded turn was given; a text says why they are not known. `undefined`: its agent has no memory. */
export async function givenTo(
  snapshotId: string,
  { spec: { memory, name }, document, owner, context }: Recorded,
): Promise<readonly MemoryVersion[] | string | undefined> {
  if (memory === undefined) return undefined;
  // Its shape was checked when the session was imported.
  const written = document.memory as unknown as
    | { readonly versions: readonly MemoryVersion[]; readonly notes: MemoryExport['notes'] }
    | undefined;
  const note = written?.notes.find((each) => each.snapshotId === snapshotId);
  if (note === undefined || note.given.length === 0) return [];
  const known = new Map(written?.versions.map((version) => [version.id, version]));
  if (note.given.some((id) => !known.has(id))) {
    try {
      const scope = scopeFor(memory, { ...defined({ owner }), agent: name, context });
      for (const version of (await indexOf(memory.support, scope)).versions) {
        known.set(version.id, version);
      }
    } catch (error) {
      return `The turn was given entries of memory "${memory.name}", which cannot be read. ${String(error)}`;
    }
  }
  const found = note.given.flatMap((id) => known.get(id) ?? []);
  const gone = note.given.length - found.length;
  if (gone === 0) return found;
  return `Of the ${note.given.length} entries of memory "${memory.name}" that the turn was given, ${gone} ${gone === 1 ? 'has' : 'have'} been deleted.`;
}
