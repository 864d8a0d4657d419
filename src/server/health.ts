import { jsonResponse } from './json-response.ts';
import type { Router, Served } from './served.ts';

/** `GET /healthz`: 200 while the server takes requests, with what waits for a worker; 503 once it is shutting down. */
export function mountHealth(router: Router, { app, streams, turns }: Served): void {
  router.get('/healthz', async () => {
    // A server whose queue is away still takes turns that somebody waits for.
    const engine = await app.engine?.status().catch(() => undefined);
    return jsonResponse({
      status: 'ok',
      streams: streams.size,
      turns: turns.size,
      ...(engine && { engine }),
    });
  });
}
