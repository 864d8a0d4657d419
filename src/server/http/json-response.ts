import { safetyHeaders } from './safety-headers.ts';

const encoder = new TextEncoder();

/** A JSON answer that no cache keeps; its length is known, so that short ones are not compressed. */
export function jsonResponse(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const bytes = encoder.encode(JSON.stringify(value));
  return new Response(bytes, {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(bytes.byteLength),
      ...safetyHeaders,
      ...headers,
    },
  });
}
