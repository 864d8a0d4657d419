import { safetyHeaders } from '../http/json-response.ts';
import type { StreamFormat } from '../stream/stream-response.ts';

/** One JSON per line: the chunks of an action, then its result or its error. */
export async function* actionLines(
  run: (onChunk: (chunk: unknown) => void) => Promise<unknown>,
  traceId: string,
  toError: (error: unknown) => object,
): AsyncGenerator<readonly unknown[]> {
  const chunks: unknown[] = [];
  let more = Promise.withResolvers<void>();
  let last: object | undefined;
  const end = (line: object): void => {
    last = line;
    more.resolve();
  };
  run((chunk) => {
    chunks.push(chunk);
    more.resolve();
  }).then(
    (result) => end({ result, telemetry: { traceId } }),
    (error: unknown) => end({ error: toError(error) }),
  );
  while (!last) {
    await more.promise;
    more = Promise.withResolvers();
    yield chunks.splice(0);
  }
  yield [last];
}

/** Calls a function when these have ended, or are left. */
export async function* ending<T>(lines: AsyncGenerator<T>, end: () => void): AsyncGenerator<T> {
  try {
    yield* lines;
  } finally {
    end();
  }
}

/** How lines are written. An empty one says nothing, and JSON readers skip it. */
export function lineFormat(headers: Readonly<Record<string, string>>): StreamFormat<unknown> {
  return {
    encode: (line) => `${JSON.stringify(line)}\n`,
    keepAlive: '\n',
    headers: { ...safetyHeaders, 'content-type': 'text/plain; charset=utf-8', ...headers },
  };
}
