import { raceSignal } from '../../core/async/signal.ts';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { checkArtifactName, fileHashOf, filePart } from '../../protocol/artifacts.ts';
import type { OpenedFile, OpenFileOptions } from '../../protocol/opened-file.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { NewFile, SessionFiles } from '../../session/session.ts';
import type { FileHolder, FilePlace, FileSupport, OpenFile } from '../../store/contract/store.ts';
import { damagedFile } from '../../store/rules/file-pieces.ts';
import { maxFileSize } from '../../store/rules/size-limits.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { InvocationState } from './invocation-state.ts';
import { markingLost } from './stop.ts';

export function invocationFiles(invocation: InvocationState): SessionFiles {
  return {
    save: (file) => saveFile(invocation, file),
    open: (name, options) => openOwn(invocation, name, options),
  };
}

/** Stores a file under the run of the turn, and adds it to the session. */
async function saveFile(invocation: InvocationState, file: NewFile): Promise<Artifact> {
  const { spec, scope, run, working, control } = invocation;
  const { name, data, metadata } = checked(file);
  const files = filesOf(spec);
  const ref = run?.turnBase.run;
  if (ref === undefined || working.isClosed) throw outsideTurn();
  let failure: unknown;
  const pieces = boundedPieces(data, {
    name,
    maxSize: file.maxSize ?? spec.limits.session?.fileSize ?? maxFileSize,
    signal: control.signal,
    onError: (error) => {
      failure = error;
    },
  });
  const stored = await markingLost(invocation, () =>
    files.write({ scope, run: ref } satisfies FileHolder, pieces).catch((error: unknown) => {
      // An error of the source says nothing about the run.
      if (error !== failure) throw error;
      return undefined;
    }),
  );
  if (stored === undefined) throw failure;
  const contentType = file.contentType ?? typeOf(data);
  const part = filePart({ ...stored, contentType });
  const artifact = { name, parts: [part], ...(metadata && { metadata }) };
  const [added] = working.addArtifacts([artifact], { files: 'stored' });
  return added ?? artifact;
}

async function openOwn(
  { spec, scope, position, run, working }: InvocationState,
  name: string,
  options: OpenFileOptions | undefined,
): Promise<OpenedFile> {
  const { sessionId } = position;
  const place = { scope, sessionId, ...(run && { runId: run.runId }) };
  const artifact = working.state.artifacts.find((each) => each.name === name);
  return await openFile(spec, place, { artifact, name }, options);
}

function checked(file: NewFile): NewFile {
  const { name, contentType, maxSize } = file;
  if (typeof name !== 'string' || name === '') {
    throw invalid('saveFile needs the name of the artifact.');
  }
  checkArtifactName(name);
  if (contentType !== undefined && typeof contentType !== 'string') {
    throw invalid('The `contentType` of a file must be a text, such as "application/pdf".');
  }
  if (maxSize !== undefined && !(maxSize >= 0)) {
    throw invalid('The `maxSize` of a file must be a number of bytes.');
  }
  return file;
}

function typeOf(data: NewFile['data']): string {
  const type = data instanceof Blob ? data.type : '';
  return type === '' ? 'application/octet-stream' : type;
}

/** The bytes of a file on their way to the store. Ends with an error when there are too many or the turn is stopped. */
async function* boundedPieces(
  data: NewFile['data'],
  { name, maxSize, signal, onError }: PieceOptions,
): AsyncGenerator<Uint8Array> {
  const pieces = piecesOf(data);
  try {
    let size = 0;
    for (;;) {
      const next = await raceSignal(pieces.next(), signal);
      if (next.done === true) return;
      const piece = next.value;
      if (!(piece instanceof Uint8Array)) {
        throw invalid(`The data of the file "${name}" must come in pieces that are Uint8Arrays.`);
      }
      size += piece.length;
      if (size > maxSize) throw tooLarge(name, maxSize);
      yield piece;
    }
  } catch (error) {
    onError(error);
    throw error;
  } finally {
    // Not awaited: a source that is stuck must not hold up a turn that was stopped.
    pieces.return?.(undefined)?.then(undefined, () => {});
  }
}

interface PieceOptions {
  readonly name: string;
  readonly maxSize: number;
  readonly signal: AbortSignal;
  readonly onError: (error: unknown) => void;
}

function piecesOf(data: NewFile['data']): AsyncIterator<Uint8Array> {
  if (data instanceof Uint8Array) return once(data);
  if (data instanceof Blob) return fromStream(data.stream());
  if (data instanceof ReadableStream) return fromStream(data);
  if (typeof data === 'object' && data !== null && Symbol.asyncIterator in data) {
    return data[Symbol.asyncIterator]();
  }
  throw invalid(
    'The `data` of a file must be a Uint8Array, a Blob, a ReadableStream or an async iterable of Uint8Arrays.',
  );
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}

// Not by iterating: a read that is stuck ends only when the stream is cancelled.
function fromStream(stream: ReadableStream<Uint8Array>): AsyncIterator<Uint8Array> {
  const reader = stream.getReader();
  return {
    next: () => reader.read() as Promise<IteratorResult<Uint8Array>>,
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

function outsideTurn(): WaymarkError {
  return failedPrecondition(
    'saveFile needs a running turn. Call it in a tool or in the function that you pass to session.run(), and await it.',
  );
}

function tooLarge(name: string, maxSize: number): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The file "${name}" is larger than ${maxSize} bytes. Raise \`limits.session.fileSize\`, or the \`maxSize\` of the file.`,
    { details: { limit: 'session.fileSize', most: maxSize } },
  );
}

export interface FileArtifact extends OpenFile {
  readonly hash: string;
  readonly contentType: string;
}

/** The files of an agent's store. `FAILED_PRECONDITION` if it has none. */
function filesOf(spec: Pick<AgentSpec, 'name' | 'store'>): FileSupport {
  const { files } = spec.store ?? {};
  if (files !== undefined) return files;
  const why =
    spec.store === undefined
      ? `Agent "${spec.name}" has no store: the client holds its state`
      : `The store of agent "${spec.name}" cannot keep files`;
  throw failedPrecondition(
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
    throw failedPrecondition(
      `Artifact "${name}" was not saved with saveFile: its content is in the state. Read its parts.`,
    );
  }
  const { start = 0, end = file.size } = range;
  if (!isPosition(start) || !isPosition(end) || end < start) {
    throw invalid(
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
