import type { GenericSchema, InferOutput } from 'valibot';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { letOthersRun } from '../../core/platform.ts';
import type { Clock } from '../../core/time/clock.ts';
import { withTimeout } from '../../core/time/timers.ts';
import { parseShape } from '../../protocol/parse.ts';
import { headerOf } from './connection.ts';
import { checkPieces } from './join-pieces.ts';
import { exceededBound } from './json-scan.ts';
import type { ServerLimits } from './limits.ts';

/** Refuses a value before its shape is parsed, with a better reason. */
type CheckValue = (value: Json) => void;

/** How bodies are read. */
export interface BodyOptions {
  readonly limits: Pick<ServerLimits, 'bodyBytes' | 'jsonDepth' | 'jsonValues' | 'requestTimeout'>;
  readonly clock: Clock;
}

/** Reads a JSON body and checks its shape; `what` names it in errors. An empty body reads as `{}`. */
export async function readBody<Schema extends GenericSchema>(
  c: Parameters<typeof headerOf>[0],
  schema: Schema,
  {
    what,
    limits,
    clock,
    check,
  }: BodyOptions & { readonly what: string; readonly check?: CheckValue },
): Promise<InferOutput<Schema>> {
  const text = await readText(c, { limits, clock });
  if (text === '') return parseShape(schema, {}, what);
  const options = { what, limits, ...(check && { check }) };
  if (isLongText(text)) return await parseInSteps(schema, text, options);
  return parseText(schema, text, options);
}

/** How a JSON text from outside is parsed. `what` names it in errors. */
export interface TextOptions {
  readonly what: string;
  readonly limits: JsonLimits;
  /** Whether {@link checkJsonText} has passed it. @default false */
  readonly isChecked?: boolean;
  readonly check?: CheckValue;
}

/** Whether a text is long enough to be parsed in steps. */
export function isLongText(text: string | undefined): boolean {
  return text !== undefined && text.length > 64 * 1024;
}

/** Parses a JSON text of this shape; text that is not JSON, or exceeds its limits, is `INVALID_ARGUMENT`. */
export function parseText<Schema extends GenericSchema>(
  schema: Schema,
  text: string,
  { what, limits, isChecked = false, check }: TextOptions,
): InferOutput<Schema> {
  if (!isChecked) checkJsonText(text, limits);
  const value = parseJson(text);
  check?.(value);
  return parseShape(schema, value, what);
}

/** Does the same for a long text, and lets others have the event loop before, in between and after. */
export async function parseInSteps<Schema extends GenericSchema>(
  schema: Schema,
  text: string,
  options: TextOptions,
): Promise<InferOutput<Schema>> {
  await letOthersRun();
  if (options.isChecked !== true) {
    checkJsonText(text, options.limits);
    await letOthersRun();
  }
  const parsed = parseText(schema, text, { ...options, isChecked: true });
  await letOthersRun();
  return parsed;
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw new WaymarkError('INVALID_ARGUMENT', 'The body is not valid JSON.');
  }
}

type JsonLimits = Pick<ServerLimits, 'jsonDepth' | 'jsonValues'>;

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
  if (length !== undefined && (await c.env?.own?.hasBody(Number(length)))) return request.text();
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
