import { isWaymarkError } from '../../../core/error.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/json.ts';
import { fileHashesIn } from '../../../protocol/artifacts.ts';
import type { Part } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { withLongText } from '../../../session/long-part.ts';
import type { Disk } from '../disk.ts';
import { isArtifactHash } from '../state-delta.ts';

/** A part whose text was in the file of chunks, or whose data was in a file of bytes. */
type StoredPart = Part | { readonly rest: Part; readonly lists: readonly string[] } | DataPart;

interface DataPart {
  readonly rest: Part;
  readonly file: string;
}

/** An artifact with the hashes of the saved files that it names. */
export interface OldArtifact {
  readonly content: Artifact;
  readonly files: readonly string[];
}

// The file of an artifact must not name a file elsewhere.
const dataFile = /^[0-9a-f]{64}\.bin$/;

/** The artifacts in the folder of a session tree of formats 1 to 4. */
export class OldArtifacts {
  readonly #disk: Disk;
  readonly #folder: string;
  #chunks: Chunks | undefined;

  constructor(disk: Disk, tree: string) {
    this.#disk = disk;
    this.#folder = `${tree}/artifacts`;
  }

  /** The artifact with this hash; `undefined` when it is missing or damaged. */
  read(hash: string): OldArtifact | undefined {
    try {
      const text = this.#disk.readText(`${this.#folder}/${hash}.json`);
      if (text === undefined) return undefined;
      const stored = parseJson(text, hash) as unknown as Artifact;
      const parts = (stored.parts as readonly StoredPart[]).map((part) => this.#whole(part));
      const content = { ...stored, parts } as Artifact;
      if (!isArtifactHash(content, hash)) return undefined;
      return { content, files: fileHashesIn([content]) };
    } catch (error) {
      // A damaged one has no usable shape, either.
      if (isWaymarkError(error) || error instanceof TypeError) return undefined;
      throw error;
    }
  }

  #whole(part: StoredPart): Part {
    if ('lists' in part && 'rest' in part) return withLongText(part.rest, this.#text(part.lists));
    return 'file' in part && 'rest' in part && dataFile.test(part.file)
      ? this.#data(part)
      : (part as Part);
  }

  #data({ rest, file }: DataPart): Part {
    const name = `${this.#folder}/${file}`;
    const bytes = this.#disk.open(name, ({ size, read }) => read(0, size()));
    const start = 'media' in rest ? rest.media.url : '';
    return withLongText(rest, start + (bytes?.toString('base64') ?? ''));
  }

  #text(lists: readonly string[]): string {
    this.#chunks ??= readChunks(this.#disk.readText(`${this.#folder}/chunks.jsonl`) ?? '');
    const { texts, lists: known } = this.#chunks;
    return lists
      .flatMap((list) => known.get(list) ?? [])
      .map((chunk) => texts.get(chunk) ?? '')
      .join('');
  }
}

/** Texts by the hashes of their chunks, and lists of chunks by theirs. */
interface Chunks {
  readonly texts: Map<string, string>;
  readonly lists: Map<string, readonly string[]>;
}

function readChunks(text: string): Chunks {
  const found: Chunks = { texts: new Map(), lists: new Map() };
  for (const line of text.split('\n')) {
    const { chunk, text: content, list, chunks } = toObject(line);
    if (typeof chunk === 'string') found.texts.set(chunk, String(content));
    if (typeof list === 'string' && Array.isArray(chunks))
      found.lists.set(list, chunks.map(String));
  }
  return found;
}

// The hash of the artifact shows what is missing.
function toObject(line: string): JsonObject {
  try {
    const value = parseJson(line, 'chunks.jsonl');
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
