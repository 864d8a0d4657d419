import * as v from 'valibot';
import { sha256 } from '../../core/json/hash.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { jsonValue } from '../../protocol/json-value.ts';
import { parseShape } from '../../protocol/parse.ts';
import type {
  MaintenanceSupport,
  MemoryExport,
  MemorySpan,
  MemorySupport,
  Scope,
  Store,
} from '../contract/store.ts';
import { nameOfOwned, ownedScope } from './memory.ts';

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const text = v.pipe(v.string(), v.maxLength(256));
const memory = v.object({
  family: text,
  lane: text,
  versions: v.array(
    v.object({
      memory: text,
      id: text,
      entry: text,
      value: v.optional(jsonValue),
      snapshotId: text,
      message: count,
      seq: count,
      createdAt: count,
    }),
  ),
  notes: v.array(
    v.object({
      snapshotId: text,
      path: v.array(v.tuple([text, count, count])),
      given: v.array(text),
      createdAt: count,
    }),
  ),
});

type Exported = v.InferOutput<typeof memory>;
type Exchange = Pick<MaintenanceSupport, 'exportSession' | 'importSession'>;

/**
 * Exports and imports that carry what a session has written to the memory of its owner. Entries that others read stay in their store: a
 * document must not write to them.
 */
export function withMemory(
  { exportSession, importSession }: Exchange,
  {
    memory: support,
    timeline,
  }: {
    readonly memory: Store['memory'] | undefined;
    readonly timeline: Store['timeline'] | undefined;
  },
): Exchange {
  if (support === undefined) return { exportSession, importSession };
  return {
    async exportSession(scope, sessionId) {
      const document = await exportSession(scope, sessionId);
      const found = document && (await support.exportSession(scope, sessionId));
      if (document === undefined || found === undefined) return document;
      return { ...document, memory: toDocument(found) };
    },
    async importSession(scope, document, options) {
      const given: unknown = document?.memory;
      const read = given === undefined ? undefined : parseShape(memory, given, 'session document');
      const info = await importSession(scope, document, options);
      if (read === undefined || timeline === undefined) return info;
      const all = { includeOrphaned: true, limit: Number.MAX_SAFE_INTEGER };
      const { items } = await timeline.listSnapshots(scope, info.sessionId, all);
      const byIndex = new Map(items.map(({ index, snapshotId }) => [index, snapshotId]));
      const ids = new Map(
        document.snapshots.map(({ index, snapshotId }) => [
          String(snapshotId),
          byIndex.get(Number(index)) ?? info.headId ?? '',
        ]),
      );
      await restoreMemory(support, { scope, sessionId: info.sessionId, ids }, read);
      return info;
    },
  };
}

function toDocument({ family, lane, versions, notes }: MemoryExport): JsonObject {
  const owned = versions.flatMap(({ scope, ...version }) => {
    const name = nameOfOwned(scope);
    return name === undefined ? [] : [{ memory: name, ...version }];
  });
  return { family, lane, versions: owned, notes } as unknown as JsonObject;
}

/** Writes what was read under the ids that the session has now. Beside the original, versions and entries get new ids as well. */
async function restoreMemory(
  support: MemorySupport,
  to: {
    readonly scope: Scope;
    readonly sessionId: string;
    readonly ids: ReadonlyMap<string, string>;
  },
  { family, lane, versions, notes }: Exported,
): Promise<void> {
  const { scope, sessionId, ids } = to;
  const { owner } = scope;
  const [first = ''] = ids.values();
  const isCopy = [...ids].some(([from, now]) => from !== now);
  const known = new Set(versions.flatMap(({ id, entry }) => [id, entry]));
  const renewed = (id: string): string =>
    isCopy && known.has(id) ? sha256(`${first} ${id}`).slice(0, 32) : id;
  const newLane = isCopy ? first : lane;
  const spanOf = ([on, from, to]: MemorySpan): MemorySpan => [on === lane ? newLane : on, from, to];
  await support.importSession(scope, sessionId, {
    family,
    lane: newLane,
    versions:
      owner === undefined
        ? []
        : versions.map(({ memory: name, value, ...version }) => ({
            ...version,
            scope: ownedScope(name, owner),
            id: renewed(version.id),
            entry: renewed(version.entry),
            ...(value !== undefined && { value }),
            snapshotId: ids.get(version.snapshotId) ?? version.snapshotId,
          })),
    notes: notes.flatMap(({ snapshotId, path, given, createdAt }) => {
      const id = ids.get(snapshotId);
      if (id === undefined || !isSnapshotId(id)) return [];
      return [{ snapshotId: id, path: path.map(spanOf), given: given.map(renewed), createdAt }];
    }),
  });
}
