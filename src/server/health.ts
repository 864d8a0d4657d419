import { jsonResponse } from './json-response.ts';
import type { Router, Served } from './served.ts';

/** `GET /healthz`: 200 while the server takes requests, 503 once it is shutting down. */
export function mountHealth(router: Router, { streams, turns }: Served): void {
  router.get('/healthz', () =>
    jsonResponse({ status: 'ok', streams: streams.size, turns: turns.size }),
  );
}
