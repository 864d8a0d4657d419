import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Part } from '../../protocol/message.ts';
import { providerMetadataKey } from '../../protocol/messages/provider-metadata.ts';
import { toMediaUrl } from './file-data.ts';
import type { ProviderOptions, StreamPart } from './types.ts';

type Metadata = Record<string, Json | undefined>;

interface Block {
  readonly kind: 'text' | 'reasoning';
  text: string;
  metadata: Metadata | undefined;
}

/** Puts the content of a message together from the parts of a model's stream, in the order in which they began. */
export class ContentBuilder {
  readonly #content: (Block | Part)[] = [];
  readonly #open = new Map<string, Block>();

  /** Adds text to the block it belongs to. */
  append(kind: Block['kind'], id: string, delta: string, metadata?: ProviderOptions): void {
    // Text and reasoning have ids of their own in some providers.
    const key = kind === 'text' ? id : `reasoning ${id}`;
    let block = this.#open.get(key);
    if (!block) {
      block = { kind, text: '', metadata: undefined };
      this.#open.set(key, block);
      this.#content.push(block);
    }
    block.text += delta;
    if (metadata) block.metadata = withProvider(block.metadata, metadata);
  }

  /** Ends a block: later chunks with the same id start a new one. */
  end(kind: Block['kind'], id: string, citations?: readonly unknown[]): void {
    const key = kind === 'text' ? id : `reasoning ${id}`;
    const block = this.#open.get(key);
    if (!block) return;
    this.#open.delete(key);
    if (citations && citations.length > 0) {
      // Said by the provider as JSON; checked with the whole message.
      block.metadata = { ...block.metadata, citations: citations as readonly Json[] };
    }
  }

  /** Adds a part that is whole. */
  add(part: Part): void {
    this.#content.push(part);
  }

  /** The content so far. */
  toParts(): Part[] {
    const parts: Part[] = [];
    for (const item of this.#content) {
      if (!('kind' in item)) {
        parts.push(item);
        continue;
      }
      const { kind, text, metadata } = item;
      if (text === '' && !metadata) continue;
      const base = kind === 'text' ? { text } : { reasoning: text };
      parts.push(metadata ? { ...base, metadata } : base);
    }
    return parts;
  }
}

/** A file, source or custom part of a stream as a part of ours. */
export function toPart(
  part: Extract<StreamPart, { type: 'file' | 'reasoning-file' | 'source' | 'custom' }>,
): Part {
  const metadata = part.providerMetadata && withProvider(undefined, part.providerMetadata);
  if (part.type === 'custom') {
    return { custom: { kind: part.kind }, ...(metadata && { metadata }) };
  }
  if (part.type === 'source') {
    const { type: _, providerMetadata: __, ...source } = part;
    // A source is JSON by its specification; checked with the whole message.
    return { custom: { source: source as JsonObject }, ...(metadata && { metadata }) };
  }
  const { mediaType, data } = part;
  const all = part.type === 'file' ? metadata : { ...metadata, reasoning: true };
  return {
    media: { url: toMediaUrl(data, mediaType), contentType: mediaType },
    ...(all && { metadata: all }),
  };
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
