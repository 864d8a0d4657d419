import { internalsOf } from '../../agent/define/create-agent.ts';
import { type FileArtifact, streamOf } from '../../agent/turn/files.ts';
import { failedPrecondition } from '../../core/error.ts';
import { contentHash } from '../../core/json/hash.ts';
import type { Json } from '../../core/json/json.ts';
import type { Lookup } from '../../protocol/ids.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { Artifact } from '../../protocol/state.ts';
import { notFound } from '../http/answer.ts';
import { lastMessageOnly, openCall, paramOf, type RequestContext } from '../http/server-context.ts';
import { flag, type NativeOperation, operation, page, readQuery } from './operation.ts';

const header = {
  Range: { description: 'One range of bytes.', schema: { type: 'string' } },
  'If-None-Match': { description: 'The ETag that is known.', schema: { type: 'string' } },
};

const answer = {
  description: 'The text, or the data of the file; 206 with a range, 304 if it is known.',
} as const;

/** Artifacts as bytes, of a session's head or of any snapshot. */
export const artifactOperations = {
  getArtifact: {
    summary: 'An artifact at the head of a session, as bytes.',
    header,
    answer,
    respond: (c, name) => answerArtifact(c, name, { sessionId: paramOf(c, 'session') }),
  },
  getSnapshotArtifact: {
    summary: 'An artifact of a snapshot, as bytes.',
    header,
    answer,
    respond: (c, name) => answerArtifact(c, name, { snapshotId: paramOf(c, 'snapshot') }),
  },
} satisfies Record<string, NativeOperation>;

const fileQuery = {
  workspace: flag('The file of the workspace, even if an artifact has its name.'),
};

/** Files of workspaces: their names, and their content. */
export const fileOperations = {
  listFiles: operation({
    summary: 'The files of the workspace, as a snapshot has them.',
    query: page,
    answer: { description: 'A page of files, by path.', schema: 'FilePage' },
    run: ({ agent, snapshotId, options }) => agent.listFiles({ snapshotId }, options),
  }),

  openFile: {
    summary: 'A saved file of a snapshot, or a file of its workspace, as bytes.',
    header,
    query: fileQuery,
    answer: {
      description: 'The content of the file; 206 with a range, 304 if it is known.',
    },
    async respond(c, operationName) {
      const snapshotId = paramOf(c, 'snapshot');
      const name = paramOf(c, 'file');
      const { agent, options } = await openCall(c, operationName, { snapshotId });
      const { workspace } = readQuery(c, fileQuery);
      const how = { ...options, ...(workspace && { workspace }) };
      const whole = await agent.openFile({ snapshotId }, name, how);
      await whole.stream.cancel();
      const { size, contentType, hash } = whole;
      async function* pieces(start: number, end: number): Pieces {
        const { stream } = await agent.openFile({ snapshotId }, name, {
          ...how,
          range: { start, end },
        });
        yield* stream;
      }
      const content = {
        length: size,
        contentType: headerValue(contentType),
        etag: `"${hash}"`,
        pieces,
      };
      return bytesResponse(c.req.raw, content, name);
    },
  } satisfies NativeOperation,
};

async function answerArtifact(
  c: RequestContext,
  operation: Operation,
  lookup: Lookup,
): Promise<Response> {
  const name = paramOf(c, 'artifact');
  const { agent, options } = await openCall(c, operation, lookup);
  const snapshot = await agent.getSnapshot(lookup, { ...options, ...lastMessageOnly });
  const found = snapshot?.state?.artifacts?.find((artifact) => artifact.name === name);
  if (snapshot === undefined || found === undefined) throw notFound('artifact', name);
  const file = await internalsOf(agent).openArtifact(snapshot, found, options.owner);
  const bytes = file === undefined ? artifactBytes(found) : storedBytes(found, file);
  return bytesResponse(c.req.raw, bytes, name);
}

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
  const respond = (status: number, more: Record<string, string> = {}, range?: Range): Response =>
    new Response(range ? streamOfPieces(content.pieces(...range)) : null, {
      status,
      headers: { ...headers, ...more },
    });
  if (isKnown(request.headers.get('if-none-match'), etag)) return respond(304);
  const ifRange = request.headers.get('if-range');
  const asked = ifRange === null || ifRange === etag ? request.headers.get('range') : null;
  const range = rangeOf(asked, length);
  if (range === undefined) return respond(200, { 'content-length': String(length) }, [0, length]);
  if (range === 'outside') return respond(416, { 'content-range': `bytes */${length}` });
  const [from, to] = range;
  const about = {
    'content-range': `bytes ${from}-${to - 1}/${length}`,
    'content-length': String(to - from),
  };
  return respond(206, about, range);
}

type Range = readonly [from: number, to: number];

/** Bytes that are read at a time, when the client has taken those before. */
const pieceLength = 256 * 1024;

/** Reads a range in pieces, each when it is asked for. */
async function* inPieces(read: ReadBytes, from: number, to: number): Pieces {
  for (let at = from; at < to; at += pieceLength) yield read(at, Math.min(at + pieceLength, to));
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

/** The content of an artifact as bytes, which are made, or read from the store, when they are sent. */
interface ArtifactBytes {
  readonly length: number;
  readonly contentType: string;
  /** Names the content: the same content has the same one. */
  readonly etag: string;
  /** The bytes from one position to before another, each piece in separate memory. */
  pieces(from: number, to: number): Pieces;
}

/** The content of an artifact that is one text, or one file in a data URL. */
export function artifactBytes(artifact: Artifact): ArtifactBytes {
  const [part, ...others] = artifact.parts;
  const content = others.length > 0 || part === undefined ? undefined : contentOf(part);
  if (content === undefined) {
    throw failedPrecondition(
      `Artifact "${artifact.name}" is not one text or one file with its data, so it cannot be served as bytes. Read it from the snapshot.`,
    );
  }
  const { length, contentType, read } = content;
  const pieces = (from: number, to: number): Pieces => inPieces(read, from, to);
  return { length, contentType, etag: etagOf(artifact), pieces };
}

/** The content of an artifact that is a file which the store keeps. */
function storedBytes(artifact: Artifact, file: FileArtifact): ArtifactBytes {
  const { size, contentType, read } = file;
  const type = headerValue(contentType);
  return { length: size, pieces: read, contentType: type, etag: etagOf(artifact) };
}

function etagOf(artifact: Artifact): string {
  return `"${contentHash(artifact as unknown as Json)}"`;
}

function contentOf(
  part: Artifact['parts'][number],
): (HeldBytes & Pick<ArtifactBytes, 'contentType'>) | undefined {
  if ('text' in part) {
    const bytes = new TextEncoder().encode(part.text);
    return { ...heldBytes(bytes), contentType: 'text/plain; charset=utf-8' };
  }
  if (!('media' in part)) return undefined;
  const { url, contentType } = part.media;
  const comma = url.indexOf(',');
  if (!url.startsWith('data:') || comma < 0) return undefined;
  const [type = '', ...parameters] = url.slice('data:'.length, comma).split(';');
  const isBase64 = parameters.at(-1) === 'base64';
  const data = url.slice(comma + 1);
  return {
    ...(isBase64 ? base64Bytes(data) : heldBytes(percentDecoded(data))),
    contentType: headerValue(contentType ?? type),
  };
}

/** Reads bytes from one position to before another, into separate memory. */
type ReadBytes = (from: number, to: number) => Uint8Array<ArrayBuffer>;

interface HeldBytes {
  readonly length: number;
  readonly read: ReadBytes;
}

function heldBytes(bytes: Uint8Array<ArrayBuffer>): HeldBytes {
  return { length: bytes.length, read: (from, to) => bytes.slice(from, to) };
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Decodes what is read. */
function base64Bytes(data: string): HeldBytes {
  // With line feeds or characters of the URL alphabet, a position in the text is not one in the bytes.
  if (!base64.test(data)) return heldBytes(Uint8Array.from(Buffer.from(data, 'base64')));
  const digits = data.length - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
  return {
    length: Math.floor((digits * 3) / 4),
    read(from, to) {
      const start = Math.floor(from / 3);
      const bytes = Buffer.from(data.slice(start * 4, Math.ceil(to / 3) * 4), 'base64');
      return Uint8Array.from(bytes.subarray(from - start * 3, to - start * 3));
    },
  };
}

function percentDecoded(data: string): Uint8Array<ArrayBuffer> {
  try {
    return new TextEncoder().encode(decodeURIComponent(data));
  } catch {
    return new TextEncoder().encode(data);
  }
}

// A model or a tool may have written the type.
function headerValue(type: string): string {
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : 'application/octet-stream';
}

export type Pieces = AsyncGenerator<Uint8Array<ArrayBuffer>>;

const sources = new WeakMap<object, Pieces>();

/** The body of a response that is read in pieces, each in separate memory. */
function streamOfPieces(pieces: Pieces): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stream = streamOf(pieces);
  sources.set(stream, pieces);
  return stream;
}

/** The pieces of a response's body; `undefined` if it was made differently. */
export function piecesOf({ body }: Response): Pieces | undefined {
  return body === null ? undefined : sources.get(body);
}
