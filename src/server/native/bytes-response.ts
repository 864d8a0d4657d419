import { streamOfPieces } from '../http/send-pieces.ts';
import type { ArtifactBytes } from './artifact-bytes.ts';

/**
 * An answer with bytes, for downloads: whole, the range that was asked for, or 304 if the client has them. Several ranges
 * at once, and ranges that cannot be read, are answered with everything, as HTTP allows.
 */
export function bytesResponse(request: Request, content: ArtifactBytes, name: string): Response {
  const { length, contentType, etag } = content;
  const headers = {
    etag,
    'accept-ranges': 'bytes',
    // The client may keep it, but asks each time: it may have lost access.
    'cache-control': 'private, no-cache',
    'content-type': contentType,
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name.toWellFormed())}`,
  };
  if (isKnown(request.headers.get('if-none-match'), etag)) {
    return new Response(null, { status: 304, headers });
  }
  const ifRange = request.headers.get('if-range');
  const asked = ifRange === null || ifRange === etag ? request.headers.get('range') : null;
  const range = rangeOf(asked, length);
  if (range === undefined) {
    return new Response(streamed(content, [0, length]), {
      headers: { ...headers, 'content-length': String(length) },
    });
  }
  if (range === 'outside') {
    return new Response(null, {
      status: 416,
      headers: { ...headers, 'content-range': `bytes */${length}` },
    });
  }
  const [from, to] = range;
  return new Response(streamed(content, range), {
    status: 206,
    headers: {
      ...headers,
      'content-range': `bytes ${from}-${to - 1}/${length}`,
      'content-length': String(to - from),
    },
  });
}

type Range = readonly [from: number, to: number];

/** Bytes that are read at a time, when the client has taken those before. */
const pieceLength = 256 * 1024;

function streamed(content: ArtifactBytes, [from, to]: Range): BodyInit {
  if ('pieces' in content) return streamOfPieces(content.pieces(from, to));
  if (to - from <= pieceLength) return content.read(from, to);
  let at = from;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const end = Math.min(at + pieceLength, to);
    controller.enqueue(content.read(at, end));
    at = end;
    if (at === to) controller.close();
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

function isKnown(header: string | null, etag: string): boolean {
  if (header === null) return false;
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag);
}

/** The range `[from, to)` that was asked for; `undefined`: everything. */
function rangeOf(header: string | null, length: number): Range | 'outside' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const from = Math.max(0, length - Number(last));
    return from < length ? [from, length] : 'outside';
  }
  if (last !== '' && Number(last) < Number(first)) return undefined;
  const to = last === '' ? length : Math.min(length, Number(last) + 1);
  return Number(first) < length ? [Number(first), to] : 'outside';
}
