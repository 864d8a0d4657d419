import { headerOf } from '../http/connection.ts';
import { safetyHeaders } from '../http/safety-headers.ts';

/** One event of a stream of server-sent events; `data` must hold no line break, as JSON never does. */
export function sseEvent({
  event,
  id,
  data,
}: {
  readonly event?: string;
  readonly id?: string | undefined;
  readonly data: string;
}): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const place = id === undefined ? '' : `id: ${id}\n`;
  return `${name}${place}data: ${data}\n\n`;
}

/** A comment, which readers skip: it keeps a silent line open. */
export const sseKeepAlive = ': keep-alive\n\n';

/** The headers of a stream that nothing in between may hold back, change or keep. */
export const sseHeaders: Readonly<Record<string, string>> = {
  ...safetyHeaders,
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** Whether a request asks for a stream of events. */
export function wantsEvents(c: Parameters<typeof headerOf>[0]): boolean {
  return headerOf(c, 'accept')?.includes('text/event-stream') ?? false;
}
