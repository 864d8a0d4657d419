import { createServer } from 'node:http';
import { emitAnswer } from '../lib/pace.ts';
import { portOf, readBody } from './node-http.ts';
import type { Listen } from './server.ts';

/** Writes the same events as Waymark does, with nothing behind it: what Node itself can do. */
export const listen: Listen = async (pace) => {
  const server = createServer(async (request, response) => {
    await readBody(request);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    let at = 0;
    await emitAnswer(pace, (text) => {
      const data = JSON.stringify({ modelChunk: { role: 'model', content: [{ text }] } });
      if (response.write(`event: chunk\nid: 1.${at++}\ndata: ${data}\n\n`)) return undefined;
      return new Promise((resolve) => response.once('drain', resolve));
    });
    response.end('event: output\ndata: {}\n\n');
  });
  return await portOf(server);
};
