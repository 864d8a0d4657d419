import { WaymarkError } from '../../core/error.ts';
import { fileHashOf } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { OpenedFile, OpenFileOptions } from '../../session/session.ts';
import type { FilePlace, FileSupport, OpenFile } from '../../store/contract/store.ts';
import { damagedFile } from '../../store/rules/file-pieces.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/** An artifact that is a stored file. */
export interface FileArtifact extends OpenFile {
  readonly hash: string;
  readonly contentType: string;
}

/** The files of an agent's store. `FAILED_PRECONDITION` if it has none. */
export function filesOf(spec: Pick<AgentSpec, 'name' | 'store'>): FileSupport {
  const { files } = fullStore(spec) ?? {};
  if (files !== undefined) return files;
  const why =
    spec.store === undefined
      ? `Agent "${spec.name}" has no store: the client holds its state`
      : `The store of agent "${spec.name}" cannot keep files`;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `${why}. Pass a \`store\` that can, such as sqliteStore, or add small content as an artifact with a data: URL.`,
  );
}

/** Opens the file that an artifact is; `undefined` if it is something else. */
export async function openArtifact(
  spec: Pick<AgentSpec, 'name' | 'store'>,
  place: FilePlace,
  { parts: [part, ...others] }: Artifact,
): Promise<FileArtifact | undefined> {
  const hash = part === undefined || others.length > 0 ? undefined : fileHashOf(part);
  if (hash === undefined) return undefined;
  const file = await filesOf(spec).open(place, hash);
  if (file === undefined) throw damagedFile(hash, 'it is missing');
  const type = part !== undefined && 'media' in part ? part.media.contentType : undefined;
  return { ...file, hash, contentType: type ?? 'application/octet-stream' };
}

/** An artifact's file, or a range of it, as a stream. */
export async function openFile(
  spec: Pick<AgentSpec, 'name' | 'store'>,
  place: FilePlace,
  found: { readonly artifact: Artifact | undefined; readonly name: string },
  { range = {} }: OpenFileOptions = {},
): Promise<OpenedFile> {
  const { artifact, name } = found;
  if (artifact === undefined) {
    throw new WaymarkError('NOT_FOUND', `There is no artifact "${name.slice(0, 64)}" to open.`);
  }
  const file = await openArtifact(spec, place, artifact);
  if (file === undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Artifact "${name}" was not saved with saveFile: its content is in the state. Read its parts.`,
    );
  }
  const { start = 0, end = file.size } = range;
  if (!isPosition(start) || !isPosition(end) || end < start) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'The range of a file must have a start and an end that are whole numbers, and the end must not be before the start.',
    );
  }
  const { contentType, size, hash } = file;
  const stream = streamOf(file.read(Math.min(start, size), Math.min(end, size)));
  return { name, contentType, size, hash, stream };
}

function isPosition(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Pieces as a stream, each of which is read when the one before has been taken. */
export function streamOf(
  pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
