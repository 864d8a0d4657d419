import { type AppOptions, memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { reply } from '../lib/text.ts';
import type { Listen } from './server.ts';

export const listen: Listen = ({ pieces }) => listenWith(memoryStore(), pieces);

/** Serves an agent over a store, as `serve` does it by default but for the log. */
export async function listenWith(
  store: NonNullable<AppOptions['store']>,
  pieces: number,
): Promise<number> {
  const app = waymark({ store });
  app.defineModel({ name: 'instant' }, async (_, { stream }) => {
    const { text, chunks } = reply(pieces);
    for (const piece of chunks) await stream({ content: [{ text: piece }] });
    return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
  });
  app.defineAgent({ name: 'bench', model: 'instant' });
  const { port } = await serve(app, { port: 0, log: () => {} });
  return port;
}
