import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { handler } from 'waymark/server';
import { app } from './agents.ts';
import { auth } from './auth.ts';

const agents = handler(app, { basePath: '/api', auth });

const server = new Hono()
  .get('/', (c) => c.text('The agents are at /api/agents.'))
  .all('/api/*', (c) => agents(c.req.raw));

await app.ready();
const hostname = process.env.HOST ?? '127.0.0.1';
const port = Number(process.env.PORT ?? 3000);
const running = serve({ fetch: server.fetch, hostname, port }, (info) => {
  console.log(`Listening on http://${hostname}:${info.port}`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    running.close();
    // Running turns may finish; unfinished background runs continue at the next start.
    await app.close();
    process.exit(0);
  });
}
