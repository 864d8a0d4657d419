import type { IncomingMessage } from 'node:http';
import type { GenericSchema, InferOutput } from 'valibot';
import { invalid, isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { letOthersRun } from '../../core/platform.ts';
import { withTimeout } from '../../core/time.ts';
import { parseShape } from '../../protocol/parse.ts';
import { headerOf } from './connection.ts';
import type { ServerLimits } from './limits.ts';
import type { RequestContext } from './server-context.ts';

/** Refuses a value before its shape is parsed, with a better reason. */
type CheckValue = (value: Json) => void;

/** Reads a JSON body and checks its shape; `what` names it in errors. An empty body reads as `{}`. */
export async function readBody<Schema extends GenericSchema>(
  c: RequestContext,
  schema: Schema,
  what: string,
  check?: CheckValue,
): Promise<InferOutput<Schema>> {
  const text = await readText(c);
  if (text === '') return parseShape(schema, {}, what);
  return await parseText(schema, text, { what, limits: c.get('server').limits, check });
}

/** How a JSON text from outside is parsed. `what` names it in errors. */
interface TextOptions {
  readonly what: string;
  readonly limits: JsonLimits;
  readonly check?: CheckValue | undefined;
}

/** Parses a JSON text of this shape; text that is not JSON, or exceeds its limits, is `INVALID_ARGUMENT`. */
export async function parseText<Schema extends GenericSchema>(
  schema: Schema,
  text: string,
  { what, limits, check }: TextOptions,
): Promise<InferOutput<Schema>> {
  const value = await readJson(text, limits);
  if (value === undefined) throw invalid('The body is not valid JSON.');
  check?.(value);
  const parsed = parseShape(schema, value, what);
  await pauseFor(text);
  return parsed;
}

/** Reads a JSON text from outside within its limits; `undefined` for any other text. */
export async function readJson(text: string, limits: JsonLimits): Promise<Json | undefined> {
  await pauseFor(text);
  checkJsonText(text, limits);
  await pauseFor(text);
  const value = jsonIn(text);
  await pauseFor(text);
  return value;
}

// A long text takes its time: others get the event loop before, in between and after.
async function pauseFor(text: string): Promise<void> {
  if (text.length > 64 * 1024) await letOthersRun();
}

type JsonLimits = Pick<ServerLimits, 'jsonDepth' | 'jsonValues'>;

/** Refuses a JSON text that is nested too deeply, or has too many values or too long a number, before it is parsed. */
function checkJsonText(text: string, { jsonDepth, jsonValues }: JsonLimits): void {
  switch (exceededBound(text, { depth: jsonDepth, values: jsonValues })) {
    case 'depth':
      throw invalid(`The JSON is nested deeper than ${jsonDepth} levels. Send a flatter one.`);
    case 'token':
      throw invalid('The JSON has a number or a gap that is too long.');
    case 'values':
      throw invalid(
        `The JSON has more than ${jsonValues} values. Send fewer, or raise limits.jsonValues of the server.`,
      );
  }
}

async function readText(c: RequestContext): Promise<string> {
  const { limits, clock } = c.get('server');
  const request = c.req.raw;
  const length = headerOf(c, 'content-length');
  if (length !== undefined && Number(length) > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  try {
    // A length that the transport holds the client to makes counting needless.
    const text = length === undefined ? countedText(request, limits.bodyBytes) : request.text();
    return await withTimeout(text, { clock, ms: limits.requestTimeout, error: tooLate });
  } catch (error) {
    if (isWaymarkError(error)) throw error;
    throw new WaymarkError('CANCELLED', 'The request ended before its body was complete.', {
      cause: error,
    });
  }
}

function tooLate(): WaymarkError {
  return new WaymarkError('DEADLINE_EXCEEDED', 'The request took too long to arrive.');
}

async function countedText(request: Request, most: number): Promise<string> {
  if (!request.body) return '';
  // One buffer that doubles: a list of pieces would take many times their size when each is a single byte.
  let bytes = new Uint8Array(Math.min(most, 16 * 1024));
  let length = 0;
  let pieces = 0;
  for await (const chunk of request.body) {
    checkPieces(++pieces, length + chunk.byteLength);
    if (length + chunk.byteLength > most) throw tooLarge(most);
    if (length + chunk.byteLength > bytes.byteLength) {
      const room = Math.max(length + chunk.byteLength, bytes.byteLength * 2);
      const larger = new Uint8Array(Math.min(most, room));
      larger.set(bytes.subarray(0, length));
      bytes = larger;
    }
    bytes.set(chunk, length);
    length += chunk.byteLength;
  }
  return new TextDecoder().decode(bytes.subarray(0, length));
}

function tooLarge(most: number): WaymarkError {
  return new WaymarkError('RESOURCE_EXHAUSTED', `The body is over the limit of ${most} bytes.`, {
    details: { tooLarge: true, bodyBytes: most },
  });
}

/**
 * A body whose length is not announced may have so many pieces of any size; beyond that they must have so many bytes on
 * average. Each takes some microseconds even if it is a single byte. What a network cuts is larger.
 */
const smallPieces = { most: 1000, bytes: 128 };

function checkPieces(pieces: number, bytes: number): void {
  if (pieces <= smallPieces.most || bytes >= pieces * smallPieces.bytes) return;
  throw invalid(
    `The body came in more than ${smallPieces.most} pieces of less than ${smallPieces.bytes} bytes. Send larger ones.`,
  );
}

/**
 * Joins the pieces of a chunked body that have arrived together. Node reads 64 KB at once, which may be ten thousand pieces,
 * and takes three times as long when each of them goes through a stream. Too many small pieces end the connection.
 */
export function joinPieces(incoming: IncomingMessage): void {
  if (incoming.headers['transfer-encoding'] === undefined) return;
  const push = incoming.push.bind(incoming);
  let waiting: Buffer[] = [];
  let pieces = 0;
  let bytes = 0;
  const flush = (): void => {
    if (waiting.length > 0) push(Buffer.concat(waiting));
    waiting = [];
  };
  incoming.push = (piece: Buffer | null) => {
    if (piece === null) {
      flush();
      return push(null);
    }
    if (incoming.destroyed) return false;
    pieces++;
    bytes += piece.byteLength;
    try {
      checkPieces(pieces, bytes);
    } catch (error) {
      incoming.destroy(error as WaymarkError);
      return false;
    }
    if (waiting.push(piece) === 1) setImmediate(flush);
    // Nothing more is read until the reader of the stream asks for it.
    return false;
  };
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

interface JsonBounds {
  /** Levels of arrays and objects. */
  readonly depth: number;
  /** Values: array items, properties, and the arrays and objects themselves. */
  readonly values: number;
}

/** The longest number or gap: no writer of JSON makes one, and reading millions of digits takes a tenth of a second. */
const maxTokenLength = 10_000;

/** Says which bound a JSON text exceeds. Reads the text only, so that nothing large is built before it is refused. */
export function exceededBound(
  text: string,
  bounds: JsonBounds,
): keyof JsonBounds | 'token' | undefined {
  let depth = 0;
  let values = 1;
  let tokenAt = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at);
    } else if (code === comma) {
      if (++values > bounds.values) return 'values';
    } else if (code === openArray || code === openObject) {
      if (++depth > bounds.depth) return 'depth';
      if (++values > bounds.values) return 'values';
    } else if (code === closeArray || code === closeObject) {
      depth--;
    } else {
      if (at - tokenAt > maxTokenLength) return 'token';
      continue;
    }
    tokenAt = at + 1;
  }
  return undefined;
}

/** The value of a JSON text; `undefined` for any other text. */
export function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The index of the closing quote; the parser refuses a string that never ends.
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  return text.charCodeAt(end - 1) === backslash ? endOfEscaped(text, start) : end;
}

// A string with escapes is read character by character: a search for each quote would take many times as long.
function endOfEscaped(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return text.length;
}
