// `new Response` refuses a body for these.
const withoutBody: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/** A response whose body fails when one message of it is too long: all of it, or one event of an event stream. */
export function boundResponse(
  response: Response,
  maxBytes: number,
  onTooLong: () => Error,
): Response {
  const { body, status, statusText, headers } = response;
  if (body === null || withoutBody.has(status)) return response;
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  let length = 0;
  let last = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = isStream ? lastEventEnd(chunk, last) : -1;
      length = end >= 0 ? chunk.length - end : length + chunk.length;
      last = chunk.at(-1) ?? last;
      if (length > maxBytes || end > maxBytes) controller.error(onTooLong());
      else controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(counting), { status, statusText, headers });
}

const newline = 10;

// An event ends with an empty line. `before` is the byte in front of the chunk.
function lastEventEnd(chunk: Uint8Array, before: number): number {
  for (let at = chunk.lastIndexOf(newline); at >= 0; at = chunk.lastIndexOf(newline, at - 1)) {
    const previous = at > 0 ? chunk[at - 1] : before;
    const isEmptyLine =
      previous === newline || (previous === 13 && (at > 1 ? chunk[at - 2] : newline) === newline);
    if (isEmptyLine) return at + 1;
    if (at === 0) break;
  }
  return -1;
}
