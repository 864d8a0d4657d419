import type { GenericSchema, InferOutput } from 'valibot';
import type { Clock } from '../core/clock.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import { parseShape } from '../protocol/parse.ts';
import { headerOf } from './connection.ts';
import { isNestedDeeperThan } from './json-depth.ts';
import type { Limits } from './limits.ts';

/** How bodies are read. */
export interface BodyOptions {
  readonly limits: Pick<Limits, 'bodyBytes' | 'jsonDepth' | 'requestTimeout'>;
  readonly clock: Clock;
}

/** Reads a JSON body and checks its shape; `what` names it in errors. An empty body reads as `{}`. */
export async function readBody<Schema extends GenericSchema>(
  c: Parameters<typeof headerOf>[0],
  schema: Schema,
  { what, limits, clock }: BodyOptions & { readonly what: string },
): Promise<InferOutput<Schema>> {
  const text = await readText(c, { limits, clock });
  return parseShape(schema, text === '' ? {} : parseJsonText(text, limits.jsonDepth), what);
}

/** Parses a JSON text from outside; what is not JSON, or nested too deeply, is `INVALID_ARGUMENT`. */
export function parseJsonText(text: string, most: number): unknown {
  if (isNestedDeeperThan(text, most)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The JSON is nested deeper than ${most} levels. Send a flatter one.`,
    );
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new WaymarkError('INVALID_ARGUMENT', 'The body is not valid JSON.');
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
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.byteLength;
    if (bytes > most) throw tooLarge(most);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function tooLarge(most: number): WaymarkError {
  return new WaymarkError('RESOURCE_EXHAUSTED', `The body is over the limit of ${most} bytes.`, {
    details: { tooLarge: true, bodyBytes: most },
  });
}
