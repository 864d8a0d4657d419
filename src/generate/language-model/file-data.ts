import { WaymarkError } from '../../core/error.ts';
import type { MediaPart } from '../../protocol/message.ts';
import type { FileData, SpecificationVersion, StreamFileData } from './types.ts';

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
export function toMediaUrl(data: StreamFileData, mediaType: string): string {
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
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `A media part needs a data: URL or an absolute URL, not "${url.slice(0, 80)}".`,
  );
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

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  // In slices: the arguments of one call must fit on the stack.
  for (let at = 0; at < bytes.length; at += 8192) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(binary);
}
