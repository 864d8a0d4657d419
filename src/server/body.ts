import type { GenericSchema, InferOutput } from 'valibot';
import type { Clock } from '../core/clock.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import { parseShape } from '../protocol/parse.ts';
import { headerOf } from './connection.ts';
import { exceededBound } from './json-scan.ts';
import type { Limits } from './limits.ts';

/** The most pieces of a body whose length is not announced: each costs some microseconds, even if it is a single byte. */
const mostPieces = 5000;

/** How bodies are read. */
export interface BodyOptions {
  readonly limits: Pick<Limits, 'bodyBytes' | 'jsonDepth' | 'jsonValues' | 'requestTimeout'>;
  readonly clock: Clock;
}

/** Reads a JSON body and checks its shape; `what` names it in errors. An empty body reads as `{}`. */
export async function readBody<Schema extends GenericSchema>(
  c: Parameters<typeof headerOf>[0],
  schema: Schema,
  { what, limits, clock }: BodyOptions & { readonly what: string },
): Promise<InferOutput<Schema>> {
  const text = await readText(c, { limits, clock });
  return parseShape(schema, text === '' ? {} : parseJsonText(text, limits), what);
}

/** Parses a JSON text from outside; text that is not JSON, or exceeds its limits, is `INVALID_ARGUMENT`. */
export function parseJsonText(text: string, limits: JsonLimits): unknown {
  checkJsonText(text, limits);
  try {
    return JSON.parse(text);
  } catch {
    throw new WaymarkError('INVALID_ARGUMENT', 'The body is not valid JSON.');
  }
}

type JsonLimits = Pick<Limits, 'jsonDepth' | 'jsonValues'>;

/** Refuses a JSON text that is nested too deeply, or has too many values or too long a number, before it is parsed. */
export function checkJsonText(text: string, { jsonDepth, jsonValues }: JsonLimits): void {
  switch (exceededBound(text, { depth: jsonDepth, values: jsonValues })) {
    case 'depth':
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `The JSON is nested deeper than ${jsonDepth} levels. Send a flatter one.`,
      );
    case 'token':
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        'The JSON has a number or a gap that is too long.',
      );
    case 'values':
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `The JSON has more than ${jsonValues} values. Send fewer, or raise limits.jsonValues of the server.`,
      );
  }
}

async function readText(
  c: Parameters<typeof headerOf>[0],
  { limits, clock }: BodyOptions,
): Promise<string> {
  const request = c.req.raw;
  const length = headerOf(c, 'content-length');
  if (length !== undefined && Number(length) > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  const late = Promise.withResolvers<never>();
  const stop = clock.every(limits.requestTimeout, () => late.reject(tooLate()));
  try {
    // A length that the transport holds the client to makes counting needless.
    const text = length === undefined ? countedText(request, limits.bodyBytes) : request.text();
    return await Promise.race([text, late.promise]);
  } catch (error) {
    if (isWaymarkError(error)) throw error;
    throw new WaymarkError('CANCELLED', 'The request ended before its body was complete.', {
      cause: error,
    });
  } finally {
    stop();
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
    if (++pieces > mostPieces) throw tooManyPieces();
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

function tooManyPieces(): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `The body came in more than ${mostPieces} pieces. Send larger ones.`,
  );
}

function tooLarge(most: number): WaymarkError {
  return new WaymarkError('RESOURCE_EXHAUSTED', `The body is over the limit of ${most} bytes.`, {
    details: { tooLarge: true, bodyBytes: most },
  });
}
