import { abortError } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { checkArtifactName, filePart } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type {
  FileData,
  NewFile,
  OpenedFile,
  OpenFileOptions,
  SessionFiles,
} from '../../session/session.ts';
import type { FileHolder, StoredFile } from '../../store/contract/store.ts';
import { maxFileSize } from '../../store/rules/size-limits.ts';
import { filesOf, openFile } from '../persistence/open-artifact.ts';
import type { InvocationState } from './invocation-state.ts';
import { whileHolding } from './while-holding.ts';

/** The files of the session that an invocation works on. */
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
  const most = file.maxSize ?? spec.limits.session?.fileSize ?? maxFileSize;
  const source = new Source(data, { name, most, signal: control.signal });
  const stored = await whileHolding(invocation, () =>
    source.orFailure(() => files.write({ scope, run: ref } satisfies FileHolder, source.pieces())),
  );
  if ('failure' in stored) throw stored.failure;
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

function typeOf(data: FileData): string {
  const type = data instanceof Blob ? data.type : '';
  return type === '' ? 'application/octet-stream' : type;
}

/** The bytes of a file on their way to the store. Ends with an error when there are too many or the turn is stopped. */
class Source {
  readonly #data: FileData;
  readonly #name: string;
  readonly #most: number;
  readonly #signal: AbortSignal;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    data: FileData,
    options: { readonly name: string; readonly most: number; readonly signal: AbortSignal },
  ) {
    this.#data = data;
    this.#name = options.name;
    this.#most = options.most;
    this.#signal = options.signal;
  }

  /** The result of storing the pieces, or the error of reading them: that one says nothing about the run. */
  async orFailure(
    store: () => Promise<StoredFile>,
  ): Promise<StoredFile | { readonly failure: unknown }> {
    try {
      return await store();
    } catch (error) {
      if (this.#failure === undefined || this.#failure.error !== error) throw error;
      return { failure: error };
    }
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const pieces = piecesOf(this.#data);
    try {
      let size = 0;
      for (;;) {
        const next = await this.#orStopped(pieces.next());
        if (next.done === true) return;
        const piece = next.value;
        if (!(piece instanceof Uint8Array)) throw notBytes(this.#name);
        size += piece.length;
        if (size > this.#most) throw tooLarge(this.#name, this.#most);
        yield piece;
      }
    } catch (error) {
      this.#failure = { error };
      throw error;
    } finally {
      // Not awaited: a source that is stuck must not hold up a turn that was stopped.
      pieces.return?.(undefined)?.then(undefined, () => {});
    }
  }

  /** A step of the source, or an error when the turn is stopped before. */
  async #orStopped<Value>(step: Promise<Value>): Promise<Value> {
    const signal = this.#signal;
    if (signal.aborted) {
      step.catch(() => {});
      throw abortError(signal);
    }
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const stop = (): void => reject(abortError(signal));
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await Promise.race([step, stopped]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** Data as pieces, whatever it is. */
function piecesOf(data: FileData): AsyncIterator<Uint8Array> {
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
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'saveFile needs a running turn. Call it in a tool or in the function that you pass to session.run(), and await it.',
  );
}

function tooLarge(name: string, most: number): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The file "${name}" is larger than ${most} bytes. Raise \`limits.session.fileSize\`, or the \`maxSize\` of the file.`,
    { details: { limit: 'session.fileSize', most } },
  );
}

function notBytes(name: string): WaymarkError {
  return invalid(`The data of the file "${name}" must come in pieces that are Uint8Arrays.`);
}

function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}
