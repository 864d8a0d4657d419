import type { Part } from '../../../protocol/message.ts';

/** A data URL in two parts: its text up to the data, and the bytes of the data. */
export interface SplitUrl {
  readonly start: string;
  readonly bytes: Buffer;
}

/** The URL of a part with data in base64. `undefined` for other parts, and for base64 that these bytes would not be written as. */
export function splitData(part: Part): SplitUrl | undefined {
  if (!('media' in part)) return undefined;
  const { url } = part.media;
  const at = url.indexOf(',') + 1;
  const start = url.slice(0, at);
  if (!start.startsWith('data:') || !start.endsWith(';base64,')) return undefined;
  const data = url.slice(at);
  const bytes = Buffer.from(data, 'base64');
  return bytes.toString('base64') === data ? { start, bytes } : undefined;
}

/** The URL that was split. */
export function joinData({ start, bytes }: SplitUrl): string {
  return start + bytes.toString('base64');
}
