import { toJson } from '../core/json/json.ts';
import { packText, unpackText } from '../core/json/packed-text.ts';
import {
  type ChunkedText,
  chunkedText,
  type TextChunk,
  WeakPool,
} from '../core/json/text-chunks.ts';
import type { Part } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import { longTextOf, withLongText } from './long-part.ts';

/** A part whose long text is kept in chunks, or as bytes; versions of it share both. */
interface CompactPart {
  readonly rest: Part;
  readonly pieces: readonly (TextChunk | Uint8Array)[];
}

interface CompactArtifact {
  readonly rest: Artifact;
  readonly parts: readonly (Part | CompactPart)[];
}

/** Artifacts for a store to keep in memory: versions of a long text share what they have in common. */
export function restArtifacts(
  artifacts: readonly Artifact[],
): readonly Artifact[] | RestingArtifacts {
  const hasLong = artifacts.some(({ parts }) =>
    parts.some((part) => longTextOf(part) !== undefined),
  );
  return hasLong ? new RestingArtifacts(artifacts) : artifacts;
}

/** Artifacts with long texts, at rest. */
export class RestingArtifacts {
  readonly #artifacts: readonly CompactArtifact[];

  constructor(artifacts: readonly Artifact[]) {
    this.#artifacts = artifacts.map((artifact) => ({
      rest: { ...artifact, parts: [] },
      parts: artifact.parts.map(restPart),
    }));
  }

  /** The artifacts with their texts. */
  wake(): readonly Artifact[] {
    const artifacts = this.#artifacts.map(({ rest, parts }) => ({
      ...rest,
      parts: parts.map((part) => ('rest' in part ? wakePart(part) : part)),
    }));
    return toJson(artifacts, 'artifacts') as unknown as readonly Artifact[];
  }
}

function restPart(part: Part): Part | CompactPart {
  const text = longTextOf(part);
  if (text === undefined) return part;
  const chunked = chunkedText(text);
  const bytes = 'media' in part ? packed(chunked) : undefined;
  return { rest: withLongText(part, ''), pieces: bytes ?? chunked.chunks };
}

const pool = new WeakPool<Uint8Array>();

/** The bytes of data in base64, those of each list of chunks; `undefined` when it is something else. */
function packed({ chunks, lists }: ChunkedText): readonly Uint8Array[] | undefined {
  const texts = new Map(chunks.map((chunk) => [chunk.hash, chunk.text]));
  const pieces: Uint8Array[] = [];
  for (const { hash, items } of lists) {
    const bytes = packText(items.map((item) => texts.get(item) ?? '').join(''));
    if (bytes === undefined) return undefined;
    pieces.push(pool.get(hash, () => bytes));
  }
  return pieces;
}

function wakePart({ rest, pieces }: CompactPart): Part {
  const texts = pieces.map((piece) => ('text' in piece ? piece.text : unpackText(piece)));
  return withLongText(rest, texts.join(''));
}
