import { isWaymarkError } from '../../../core/error.ts';
import type { NewId } from '../../../core/id.ts';
import { type Json, parseJson } from '../../../core/json/json.ts';
import { type ChunkedText, chunkedText } from '../../../core/json/long-texts.ts';
import { createSha256 } from '../../../core/platform.ts';
import { fileHashesIn, fileHashOf } from '../../../protocol/file-part.ts';
import type { Part } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { longTextOf, withLongText } from '../../../session/long-part.ts';
import { damagedFile, filePieceLength } from '../../rules/file-pieces.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { artifactsName, chunksName, dataName } from '../directory/layout.ts';
import { ChunkFile } from './chunk-file.ts';
import { joinData, type SplitUrl, splitData } from './data-url.ts';
import { isArtifactHash } from './state-delta.ts';

// Shorter texts stay in the artifact's file, where people can read them.
const longestInFile = 32_768;
// Chunks of replaced states stay in their file at least until it has this size, and has doubled.
const smallestCompacted = 1024 * 1024;

/** A part as it stands in the file of its artifact when its text is in the file of chunks. */
interface ChunkedPart {
  readonly rest: Part;
  readonly lists: readonly string[];
}

/** A part as it stands in the file of its artifact when its data is a file of bytes, behind the beginning of its data URL. */
interface DataPart {
  readonly rest: Part;
  readonly file: string;
}

type StoredPart = Part | ChunkedPart | DataPart;
type StoredArtifact = Omit<Artifact, 'parts'> & { readonly parts: readonly StoredPart[] };

/** What an artifact needs besides its own file. */
export interface ArtifactNeeds {
  readonly files: readonly string[];
  readonly lists: readonly string[];
}

// What stands in an artifact's file must not name a file elsewhere.
const dataFile = /^[0-9a-f]{64}\.bin$/;

/** Where a file is that another family has, or a run; `undefined`: nowhere. */
export type FindFile = (file: string, family: string) => string | undefined;

/** The artifacts of a folder of sessions, one file each and one for its data, named after their content and never changed. */
export class ArtifactFiles {
  readonly folder: string;
  readonly #disk: Disk;
  readonly #family: string;
  readonly #newId: NewId;
  readonly #findFile: FindFile;
  #chunks: ChunkFile | undefined;
  #compactedSize = 0;

  constructor(
    disk: Disk,
    family: string,
    { newId, findFile }: { readonly newId: NewId; readonly findFile: FindFile },
  ) {
    this.#disk = disk;
    this.folder = `${family}/${artifactsName}`;
    this.#family = family;
    this.#newId = newId;
    this.#findFile = findFile;
  }

  /** The long texts of the artifacts. Most sessions have none. */
  get chunks(): ChunkFile {
    this.#chunks ??= new ChunkFile(this.#disk, this.#chunksName, this.#newId);
    return this.#chunks;
  }

  get #chunksName(): string {
    return `${this.folder}/${chunksName}`;
  }

  read(hash: string): Artifact {
    const name = this.#name(hash);
    const { parts, ...stored } = this.#readStored(hash);
    const artifact: Artifact = {
      ...stored,
      parts: parts.map((part) => {
        if (isChunked(part)) return withLongText(part.rest, this.chunks.read(part.lists));
        return isData(part) ? this.#readData(part) : part;
      }),
    };
    if (!isArtifactHash(artifact, hash)) throw dataLoss(name, 'its content does not fit its name');
    return artifact;
  }

  /** Writes an artifact that is not there yet, for people to read as well as far as its texts are short. */
  write(artifact: Artifact, hash: string): void {
    const name = this.#name(hash);
    if (this.#disk.stamp(name) !== undefined) return;
    for (const file of fileHashesIn([artifact])) this.#adopt(file);
    const texts: ChunkedText[] = [];
    const parts = artifact.parts.map((part) => {
      const text = longTextOf(part);
      if (text === undefined) return part;
      const chunked = chunkedText(text);
      const data = splitData(part);
      if (data !== undefined) return this.#writeData(part, data, chunked.hash);
      if (text.length <= longestInFile) return part;
      texts.push(chunked);
      return { rest: withLongText(part, ''), lists: chunked.lists.map((list) => list.hash) };
    });
    if (texts.length > 0) this.chunks.write(texts);
    this.#disk.replace(name, `${JSON.stringify({ ...artifact, parts }, null, 2)}\n`);
  }

  /** What is wrong with a file; `undefined` when nothing is. Reads all of it, in pieces. */
  fileProblem(hash: string): string | undefined {
    const sum = createSha256();
    const isThere = this.#disk.open(this.#fileName(hash), ({ stamp, read }) => {
      for (let at = 0; at < stamp.size; at += filePieceLength) {
        sum.update(read(at, Math.min(filePieceLength, stamp.size - at)));
      }
      return true;
    });
    if (isThere === undefined) return damagedFile(hash, 'it is missing').message;
    if (sum.hex() === hash) return undefined;
    return damagedFile(hash, 'its content does not fit its name').message;
  }

  /** Takes a file in that a run has stored, or that another session has. */
  #adopt(hash: string): void {
    if (this.#hasFile(hash)) return;
    // One that is lost is the business of `verify`, and must not hold up the session.
    const from = this.#findFile(dataName(hash), this.#family);
    if (from !== undefined) this.#disk.link(from, this.#fileName(hash));
  }

  #hasFile(hash: string): boolean {
    return this.#disk.stamp(this.#fileName(hash)) !== undefined;
  }

  #fileName(hash: string): string {
    return `${this.folder}/${dataName(hash)}`;
  }

  remove(hash: string): void {
    this.#disk.remove(this.#name(hash));
  }

  /** Removes the chunks that none of these artifacts needs. */
  compact(hashes: ReadonlySet<string>): void {
    const size = this.#disk.stamp(this.#chunksName)?.size;
    if (size === undefined) return;
    this.chunks.keep(new Set([...hashes].flatMap((hash) => this.#listsOf(hash))));
    this.#compactedSize = this.#disk.stamp(this.#chunksName)?.size ?? 0;
  }

  /** Whether so much was written since the last time that chunks may have piled up that nothing needs. */
  get mayWaste(): boolean {
    const size = this.#disk.stamp(this.#chunksName)?.size ?? 0;
    return size > Math.max(smallestCompacted, 2 * this.#compactedSize);
  }

  has(hash: string): boolean {
    return this.#disk.stamp(this.#name(hash)) !== undefined;
  }

  /** Whether an artifact has data in files, or may have, being damaged. */
  hasData(hash: string): boolean {
    return this.has(hash) && (this.#dataOf(new Set([hash]))?.size ?? 1) > 0;
  }

  /** The files that hold none of these. All files of data stay when one of these is damaged, which `verify` reports. */
  others(hashes: ReadonlySet<string>): readonly string[] {
    const wanted = new Set([chunksName, ...[...hashes].map((hash) => `${hash}.json`)]);
    const names = this.#disk.list(this.folder).filter((name) => !wanted.has(name));
    if (!names.some(isDataFile)) return names.map((name) => `${this.folder}/${name}`);
    const data = this.#dataOf(hashes);
    const isOther = (name: string): boolean => !isDataFile(name) || data?.has(name) === false;
    return names.filter(isOther).map((name) => `${this.folder}/${name}`);
  }

  /** The files of data and the lists of chunks that an artifact needs; `undefined` when it is damaged. */
  needsOf(hash: string): ArtifactNeeds | undefined {
    try {
      const { parts } = this.#readStored(hash);
      return {
        files: parts.flatMap((part) => dataOf(part) ?? []),
        lists: parts.flatMap((part) => (isChunked(part) ? part.lists : [])),
      };
    } catch (error) {
      if (isWaymarkError(error) && error.status === 'DATA_LOSS') return undefined;
      throw error;
    }
  }

  /** The files of data that these need; `undefined` when one of them is damaged. */
  #dataOf(hashes: ReadonlySet<string>): ReadonlySet<string> | undefined {
    try {
      const parts = [...hashes].flatMap((hash) => this.#readStored(hash).parts);
      return new Set(parts.flatMap((part) => dataOf(part) ?? []));
    } catch (error) {
      if (isWaymarkError(error) && error.status === 'DATA_LOSS') return undefined;
      throw error;
    }
  }

  #readData({ rest, file }: DataPart): Part {
    const name = `${this.folder}/${file}`;
    const bytes = this.#disk.open(name, ({ stamp, read }) => read(0, stamp.size));
    if (bytes === undefined) throw dataLoss(name, 'it is missing');
    const start = 'media' in rest ? rest.media.url : '';
    return withLongText(rest, joinData({ start, bytes }));
  }

  #writeData(part: Part, { start, bytes }: SplitUrl, hash: string): DataPart {
    const file = dataName(hash);
    const name = `${this.folder}/${file}`;
    if (this.#disk.stamp(name) === undefined) this.#disk.replace(name, bytes);
    return { rest: withLongText(part, start), file };
  }

  #listsOf(hash: string): readonly string[] {
    return this.#readStored(hash).parts.flatMap((part) => (isChunked(part) ? part.lists : []));
  }

  #readStored(hash: string): StoredArtifact {
    const name = this.#name(hash);
    const text = this.#disk.readText(name);
    if (text === undefined) throw dataLoss(name, 'it is missing');
    return parse(text, name);
  }

  #name(hash: string): string {
    return `${this.folder}/${hash}.json`;
  }
}

function isChunked(part: StoredPart): part is ChunkedPart {
  return 'lists' in part && 'rest' in part;
}

function isData(part: StoredPart): part is DataPart {
  return 'file' in part && 'rest' in part && isDataFile(part.file);
}

/** The hash of the file that a part names. */
function fileOf(part: StoredPart): string | undefined {
  return 'rest' in part ? undefined : fileHashOf(part);
}

/** The name of the file with the data of a part. */
function dataOf(part: StoredPart): string | undefined {
  if (isData(part)) return part.file;
  const hash = fileOf(part);
  return hash === undefined ? undefined : dataName(hash);
}

/** Whether a file has this name for the data of an artifact. */
export function isDataFile(name: string): boolean {
  return dataFile.test(name);
}

function parse(text: string, name: string): StoredArtifact {
  let value: Json;
  try {
    value = parseJson(text, name);
  } catch (cause) {
    throw dataLoss(name, 'it is not JSON', cause);
  }
  const parts = (value as { readonly parts?: unknown } | null)?.parts;
  const isArtifact = Array.isArray(parts) && parts.every((part) => typeof part === 'object');
  if (!isArtifact) throw dataLoss(name, 'it is no artifact');
  // Its hash is checked next, and vouches for the rest of the shape.
  return value as unknown as StoredArtifact;
}
