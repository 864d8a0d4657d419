import { createServer } from 'node:http';
import { reply } from '../lib/text.ts';
import { portOf, readBody } from './node-http.ts';
import type { Listen } from './server.ts';

/** Writes the same events as Waymark does, with nothing behind it: what Node itself can do. */
export const listen: Listen = async ({ pieces }) => {
  const server = createServer(async (request, response) => {
    await readBody(request);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    let at = 0;
    for (const text of reply(pieces).chunks) {
      const data = JSON.stringify({ modelChunk: { role: 'model', content: [{ text }] } });
      if (response.write(`event: chunk\nid: 1.${at++}\ndata: ${data}\n\n`)) continue;
      await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end('event: output\ndata: {}\n\n');
  });
  return await portOf(server);
};
