/** Options of `openFile`. */
export interface OpenFileOptions {
  /** The part to read, as in `slice`: bytes from `start` to before `end`. @default all */
  readonly range?: { readonly start?: number; readonly end?: number };
}

/** A file that was opened with `openFile`. */
export interface OpenedFile {
  /** The name of the artifact, or the path of the file. */
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
