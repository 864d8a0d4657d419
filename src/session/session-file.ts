import type { JsonObject } from '../core/json/json.ts';
import type { Artifact } from '../protocol/state.ts';

/** The bytes of a file: in memory, or as they come. */
export type FileData = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** A file to store with `session.saveFile`. */
export interface NewFile {
  /** The name of the artifact; an artifact of the same name is replaced. */
  readonly name: string;
  /** The bytes. A stream is read as fast as the store writes, and never held as a whole. */
  readonly data: FileData;
  /** The media type. @default that of a Blob, else 'application/octet-stream' */
  readonly contentType?: string;
  /** Further facts as JSON, kept in the artifact. */
  readonly metadata?: JsonObject;
  /** The largest size in bytes; a larger file is `RESOURCE_EXHAUSTED`. @default `limits.session.fileSize` of the agent */
  readonly maxSize?: number;
}

/** Options of `openFile`. */
export interface OpenFileOptions {
  /** The part to read, as in `slice`: bytes from `start` to before `end`. @default all */
  readonly range?: { readonly start?: number; readonly end?: number };
}

/** A file that was opened with `openFile`. */
export interface OpenedFile {
  /** The name of the artifact. */
  readonly name: string;
  /** The media type that it was saved with. */
  readonly contentType: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** SHA-256 of the whole file, in lower-case hex. */
  readonly hash: string;
  /** The bytes of the file, or of the range. They are read from the store when they are asked for; cancel it to stop early. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** How a session stores and opens files. */
export interface SessionFiles {
  save(file: NewFile): Promise<Artifact>;
  open(name: string, options?: OpenFileOptions): Promise<OpenedFile>;
}
