import { createHash, timingSafeEqual } from 'node:crypto';
import { serve } from 'waymark/server';
import { app } from './agents.ts';

/** Serves the agents to clients that have the token. Run it behind a proxy that terminates TLS. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const expected = digest(`Bearer ${process.env.API_TOKEN ?? ''}`);

await app.ready();
const server = await serve(app, {
  host: process.env.HOST ?? '0.0.0.0',
  port: Number(process.env.PORT ?? 3000),
  // Time for running turns after SIGTERM; their clients then continue on another server.
  grace: 20_000,
  auth: (request) => {
    const given = digest(request.headers.get('authorization') ?? '');
    return process.env.API_TOKEN && timingSafeEqual(given, expected)
      ? { principal: 'api' }
      : undefined;
  },
});
process.once('SIGTERM', async () => {
  await server.close();
  await app.close({ grace: 1_000 });
});
