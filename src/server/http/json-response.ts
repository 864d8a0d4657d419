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

/**
 * The headers of every answer that has no others: browsers neither guess its type nor show it in a frame, run anything in
 * it, keep it, or let pages of other sites load it.
 */
export const safetyHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const entries = Object.entries(safetyHeaders);

/** Adds those headers that an answer does not have. */
export function addSafetyHeaders(headers: Headers): void {
  for (const [name, value] of entries) {
    if (!headers.has(name)) headers.set(name, value);
  }
}
