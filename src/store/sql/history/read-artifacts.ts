import { isWaymarkError, WaymarkError } from '../../../core/error.ts';
import { unpackText } from '../../../core/json/packed-text.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { chunkNames } from '../content/chunked-part.ts';
import {
  chunkListsOf,
  type ManifestRef,
  partsOf,
  readManifest,
  type StoredManifest,
} from '../content/manifest.ts';
import { bytesPlace, documentPlace } from '../content/places.ts';
import { all, type Plan, type SqlValue, statement } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import type { StateContext } from './state-rows.ts';

const selectParts = statement<{
  row_id: number;
  hash: Uint8Array;
  body: SqlValue;
  bytes: Uint8Array | null;
}>(
  'read_parts',
  (d) => `SELECT b.row_id, b.hash, b.body, b.bytes FROM @blobs b WHERE b.hash ${d.bytes('$1')}`,
);

/** Reads the artifacts that a stored list names, with their parts and chunks. */
export function* readArtifacts(
  rowId: number | null,
  manifest: StoredManifest | undefined,
  cipher: StateContext['cipher'],
): Plan<{ readonly value: readonly Artifact[]; readonly ref: ManifestRef } | undefined> {
  if (rowId === null || manifest === undefined) return undefined;
  const names = partsOf(manifest);
  const rows = names.length > 0 ? yield* all(selectParts, JSON.stringify(names)) : [];
  const texts = new Map(
    rows.map(({ hash, body }) => [hexOf(hash), cipher.decrypt(body, documentPlace)]),
  );
  const packed = new Map<string, string>();
  for (const { hash, bytes } of rows) {
    if (bytes !== null) packed.set(hexOf(hash), unpackText(cipher.decryptBytes(bytes, bytesPlace)));
  }
  const parts = new Map(rows.map((row) => [hexOf(row.hash), row.row_id]));
  const chunks = yield* readChunks(chunkListsOf(manifest), texts, cipher);
  const value = undamaged(() => readManifest(manifest, { texts, packed }));
  return { value, ref: { rowId, parts, chunks } };
}

/** Reads the chunks that lists name, and adds their texts. Gives their rows by list. */
function* readChunks(
  lists: readonly string[],
  texts: Map<string, string>,
  cipher: StateContext['cipher'],
): Plan<ManifestRef['chunks']> {
  const namesOf = (list: string): readonly string[] => undamaged(() => chunkNames(texts.get(list)));
  const rows = new Map<string, number>();
  for (const names of batches([...new Set(lists.flatMap(namesOf))])) {
    for (const { row_id: rowId, hash, body } of yield* all(selectParts, JSON.stringify(names))) {
      texts.set(hexOf(hash), cipher.decrypt(body, documentPlace));
      rows.set(hexOf(hash), rowId);
    }
  }
  const rowsOf = (list: string): ReadonlyMap<string, number> => {
    const known = new Map<string, number>();
    for (const name of namesOf(list)) {
      const row = rows.get(name);
      if (row !== undefined) known.set(name, row);
    }
    return known;
  };
  return new Map(lists.map((list) => [list, rowsOf(list)]));
}

function batches(names: readonly string[]): readonly (readonly string[])[] {
  const size = 1000;
  return Array.from({ length: Math.ceil(names.length / size) }, (_, at) =>
    names.slice(at * size, (at + 1) * size),
  );
}

/** Reads something. Stored documents that cannot be read, or of which one is missing, are `DATA_LOSS`. */
export function undamaged<Read>(read: () => Read): Read {
  try {
    return read();
  } catch (cause) {
    if (isWaymarkError(cause) && cause.status !== 'INVALID_ARGUMENT') throw cause;
    throw new WaymarkError(
      'DATA_LOSS',
      'A stored document cannot be read: the database was damaged or changed by hand. Restore it from a backup, or continue from another snapshot.',
      { cause },
    );
  }
}
