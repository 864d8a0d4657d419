import { failedPrecondition } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { createContextKey } from '../core/platform.ts';
import type { TextEdit } from '../protocol/artifacts.ts';
import type { Message } from '../protocol/message.ts';
import type { OpenedFile, OpenFileOptions } from '../protocol/opened-file.ts';
import type { Artifact, State } from '../protocol/state.ts';

type DeepReadonly<Value> = Value extends readonly (infer Item)[]
  ? number extends Value['length']
    ? readonly DeepReadonly<Item>[]
    : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

/** A change written on a draft, in place; it may also return the new document, as it must where there is none yet. */
type Recipe<Custom> = (draft: Custom) => Custom | undefined | void;

/**
 * The session of a running turn. Values read from it are frozen and values passed to it are copied, so changing them
 * later does not change the session.
 */
export interface Session<Custom = unknown> {
  /** The id of the session. */
  readonly id: string;
  /** The whole state as plain JSON. */
  readonly state: State;
  /** The messages of the active branch, those of this turn included. */
  readonly messages: readonly Message[];
  /** Your own state, typed by the agent's schema. It is frozen; change it with `updateCustom`. */
  readonly custom: DeepReadonly<Custom>;
  /** The artifacts. */
  readonly artifacts: readonly Artifact[];
  /** The snapshots made in this invocation. */
  readonly snapshotIds: readonly string[];
  /** Appends messages. */
  addMessages(...messages: Message[]): void;
  /** Replaces all messages. */
  setMessages(messages: readonly Message[]): void;
  /** Replaces the custom state. */
  setCustom(custom: DeepReadonly<Custom>): void;
  /**
   * Changes the custom state by a recipe over a draft; costs what it changes. Without an `initialState` the draft is
   * `undefined` until the state is set: return the first document from the recipe.
   */
  updateCustom(recipe: Recipe<Custom>): void;
  /** Adds artifacts. One with the name of an existing artifact replaces it. */
  addArtifacts(...artifacts: Artifact[]): void;
  /**
   * Edits the text of an artifact in place, and returns the artifact. All edits are made, or none. The stores keep only the
   * part of the text that changed.
   */
  editArtifact(name: string, edits: readonly TextEdit[]): Artifact;
  /** Replaces all artifacts. */
  setArtifacts(artifacts: readonly Artifact[]): void;
  /**
   * Stores a file of any size and adds it as an artifact, which names the file by its hash. The bytes go to the store in pieces, so that the
   * file is never in memory as a whole, and they are no part of the state. It needs a store; all four of ours keep files. Await it before
   * the turn ends.
   *
   * @example
   * const answer = await fetch(url);
   * await session.saveFile({ name: 'video.mp4', contentType: 'video/mp4', data: answer.body });
   */
  saveFile(file: NewFile): Promise<Artifact>;
  /** Opens a file of the session that was saved with `saveFile`, in this turn or an earlier one. */
  openFile(name: string, options?: OpenFileOptions): Promise<OpenedFile>;
}

/** The session that the running turn belongs to. */
export const sessionKey = createContextKey<Session>('waymark.session');

/** Returns the session of the enclosing turn, in tools and in the functions they call. */
export function currentSession<Custom = unknown>(): Session<Custom> {
  const session = sessionKey.get();
  if (session === undefined) {
    throw failedPrecondition(
      'There is no current session. Call currentSession() inside a turn: in a tool, or in an agent handler.',
    );
  }
  return session as Session<Custom>;
}

/** The bytes of a file: in memory, or as they come. */
type FileData = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

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

export interface SessionFiles {
  save(file: NewFile): Promise<Artifact>;
  open(name: string, options?: OpenFileOptions): Promise<OpenedFile>;
}
