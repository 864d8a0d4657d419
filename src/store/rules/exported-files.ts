import { fromBase64, toBinary } from '../../core/base64.ts';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { FileSupport, MaintenanceSupport, Scope, Store } from '../contract/store.ts';
import { damagedFile } from './file-pieces.ts';

/** Bytes of files that one document may hold: it is one JSON value, so it is in memory as a whole. */
const maxBytes: number = 16 * 1024 * 1024;

/** Exports and imports that carry the files of a session, as base64 under `content.files`. */
export function withFiles(
  { exportSession, importSession }: MaintenanceSupport,
  files: Store['files'],
): Pick<MaintenanceSupport, 'exportSession' | 'importSession'> {
  return {
    async exportSession(scope, sessionId) {
      const document = await exportSession(scope, sessionId);
      if (document === undefined || files === undefined) return document;
      return await addFiles(document, files, scope);
    },
    async importSession(scope, document, options) {
      await storeFiles(document, files, scope);
      return await importSession(scope, document, options);
    },
  };
}

async function addFiles(
  document: SessionExport,
  files: FileSupport,
  scope: Scope,
): Promise<SessionExport> {
  const hashes = hashesIn(document);
  if (hashes.length === 0) return document;
  const { sessionId } = document.session;
  const table: Record<string, string> = {};
  let total = 0;
  for (const hash of hashes) {
    const file = await files.open({ scope, sessionId }, hash);
    if (file === undefined) throw damagedFile(hash, 'it is missing');
    total += file.size;
    if (total > maxBytes) throw tooLarge(sessionId);
    const texts: string[] = [];
    for await (const piece of file.read(0, file.size)) texts.push(toBinary(piece));
    table[hash] = btoa(texts.join(''));
  }
  return { ...document, format: 3, content: { ...document.content, files: table } };
}

async function storeFiles(
  document: SessionExport,
  files: Store['files'],
  scope: Scope,
): Promise<void> {
  const hashes = hashesIn(document);
  if (hashes.length === 0) return;
  if (files === undefined) {
    throw failedPrecondition(
      'The session has files, and this store cannot keep files. Import it into another one, such as sqliteStore.',
    );
  }
  const table = document.content.files as JsonObject | undefined;
  for (const hash of hashes) {
    const text = Object.hasOwn(table ?? {}, hash) ? table?.[hash] : undefined;
    const bytes = typeof text === 'string' ? fromBase64(text) : undefined;
    if (bytes === undefined) throw notInside(hash);
    const stored = await files.write({ scope }, once(bytes));
    if (stored.hash !== hash) throw notInside(hash);
  }
}

/** The files that a document names. What has another shape is refused by the import itself. */
function hashesIn(document: SessionExport | null): readonly string[] {
  const artifacts = Object.values(
    document?.content?.artifacts ?? {},
  ) as unknown as readonly Artifact[];
  return fileHashesIn(artifacts.filter((each) => Array.isArray(each?.parts)));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function tooLarge(sessionId: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `Session "${sessionId}" has files of more than ${maxBytes} bytes, which do not fit in one document. Back up the whole store instead, or remove the artifacts and prune the snapshots that have them.`,
    { details: { most: maxBytes } },
  );
}

function notInside(hash: string): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The session document is damaged. It does not have the content of the file ${hash}.`,
  );
}
