import { toBase64 } from '../../core/base64.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { defined, type Json, type JsonObject } from '../../core/json/json.ts';
import type { MediaPart, Part } from '../../protocol/message.ts';
import { providerMetadataKey } from '../../protocol/messages.ts';
import type {
  FileData,
  ProviderOptions,
  SpecificationVersion,
  StreamFileData,
  StreamPart,
} from './types.ts';

type Metadata = Record<string, Json | undefined>;

type Kind = 'text' | 'reasoning';

/** A part of text or reasoning that grows. */
type Block = { [kind in Kind]?: string } & { metadata?: Metadata };

/** Puts the content of a message together from the parts of a model's stream, in the order in which they began. */
export class ContentBuilder {
  readonly #content: (Block | Part)[] = [];
  readonly #open = new Map<string, Block>();

  /** Adds text to the block it belongs to. */
  append(kind: Kind, id: string, delta: string, metadata?: ProviderOptions): void {
    const key = keyOf(kind, id);
    let block = this.#open.get(key);
    if (!block) {
      block = { [kind]: '' };
      this.#open.set(key, block);
      this.#content.push(block);
    }
    block[kind] += delta;
    if (metadata) block.metadata = withProvider(block.metadata, metadata);
  }

  /** Ends a block: later chunks with the same id start a new one. */
  end(
    kind: Kind,
    id: string,
    metadata: ProviderOptions | undefined,
    citations: readonly unknown[] = [],
  ): void {
    if (metadata) this.append(kind, id, '', metadata);
    const key = keyOf(kind, id);
    const block = this.#open.get(key);
    this.#open.delete(key);
    // Said by the provider as JSON; checked with the whole message.
    if (block && citations.length > 0)
      block.metadata = { ...block.metadata, citations: citations as readonly Json[] };
  }

  /** Adds a part that is whole. */
  add(part: Part): Part {
    this.#content.push(part);
    return part;
  }

  /** The content so far, without empty blocks. */
  toParts(): Part[] {
    return this.#content.filter(
      (part) =>
        part.metadata !== undefined ||
        !(('text' in part && part.text === '') || ('reasoning' in part && part.reasoning === '')),
    ) as Part[];
  }
}

// Text and reasoning have ids of their own in some providers.
function keyOf(kind: Kind, id: string): string {
  return kind === 'text' ? id : `reasoning ${id}`;
}

/** A file, source or custom part of a stream as a part of ours. */
export function toPart(
  part: Extract<StreamPart, { type: 'file' | 'reasoning-file' | 'source' | 'custom' }>,
): Part {
  const { type, providerMetadata, ...rest } = part;
  const metadata = providerMetadata && withProvider(undefined, providerMetadata);
  if (part.type === 'custom') return { custom: { kind: part.kind }, ...defined({ metadata }) };
  // A source is JSON by its specification; checked with the whole message.
  if (part.type === 'source')
    return { custom: { source: rest as JsonObject }, ...defined({ metadata }) };
  const { mediaType, data } = part;
  const all = type === 'file' ? metadata : { ...metadata, reasoning: true };
  const media = { url: toMediaUrl(data, mediaType), contentType: mediaType };
  return { media, ...defined({ metadata: all }) };
}

/** Part metadata with what a provider wants back; of one provider, what came later wins. */
export function withProvider(before: Metadata | undefined, added: ProviderOptions): Metadata {
  const known = before?.[providerMetadataKey] as ProviderOptions | undefined;
  const merged: Record<string, JsonObject> = { ...known };
  for (const [provider, values] of Object.entries(added)) {
    merged[provider] = { ...merged[provider], ...values };
  }
  return { ...before, [providerMetadataKey]: merged };
}

/** A media part as a model of some version takes it. */
export function toFileData(
  { media }: MediaPart,
  version: SpecificationVersion,
): { readonly data: FileData; readonly mediaType: string } {
  const inline = parseDataUrl(media.url);
  if (inline) {
    const mediaType = media.contentType ?? inline.mediaType;
    const { base64 } = inline;
    return { data: version === 'v4' ? { type: 'data', data: base64 } : base64, mediaType };
  }
  const url = parseUrl(media.url);
  return {
    data: version === 'v4' ? { type: 'url', url } : url,
    mediaType: media.contentType ?? typeOfExtension(url.pathname),
  };
}

/** A file a model made, as a URL that holds it or says where it is. */
function toMediaUrl(data: StreamFileData, mediaType: string): string {
  if (typeof data === 'string') return `data:${mediaType};base64,${data}`;
  if (data instanceof Uint8Array) return `data:${mediaType};base64,${toBase64(data)}`;
  return data.type === 'url' ? String(data.url) : toMediaUrl(data.data, mediaType);
}

function parseDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  if (!url.startsWith('data:')) return undefined;
  const comma = url.indexOf(',');
  if (comma < 0) throw badUrl(url);
  const [mediaType = '', ...flags] = url.slice('data:'.length, comma).split(';');
  const body = url.slice(comma + 1);
  return {
    mediaType: mediaType === '' ? 'text/plain' : mediaType,
    base64: flags.includes('base64')
      ? body
      : toBase64(new TextEncoder().encode(decodeURIComponent(body))),
  };
}

function parseUrl(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw badUrl(url);
  }
}

function badUrl(url: string): WaymarkError {
  return invalid(`A media part needs a data: URL or an absolute URL, not "${url.slice(0, 80)}".`);
}

const types: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  txt: 'text/plain',
};

// Most media without a type are images; models that need to know better say so.
function typeOfExtension(path: string): string {
  return types[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? 'image/*';
}
