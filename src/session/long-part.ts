import { isLongText } from '../core/json/text-chunks.ts';
import type { Part } from '../protocol/message.ts';

/** The long text of a part, which stores keep in chunks: that of a text part, or the URL of media, which may be all its data. */
export function longTextOf(part: Part): string | undefined {
  if ('text' in part) return isLongText(part.text) ? part.text : undefined;
  if ('media' in part) return isLongText(part.media.url) ? part.media.url : undefined;
  return undefined;
}

/** The part with another text in the place of {@link longTextOf}. */
export function withLongText(part: Part, text: string): Part {
  if ('text' in part) return { ...part, text };
  return 'media' in part ? { ...part, media: { ...part.media, url: text } } : part;
}
