import { type AppOptions, memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { emitAnswer, type Pace } from '../lib/pace.ts';
import type { Listen } from './server.ts';

export const listen: Listen = (pace) => listenWith(memoryStore(), pace);

/** Serves an agent over a store, as `serve` does it by default but for the log. */
export async function listenWith(
  store: NonNullable<AppOptions['store']>,
  pace: Pace,
): Promise<number> {
  const app = waymark({ store });
  app.defineModel({ name: 'instant' }, async (_, { stream }) => {
    const text = await emitAnswer(pace, (piece) => stream({ content: [{ text: piece }] }));
    return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
  });
  app.defineAgent({ name: 'bench', model: 'instant' });
  const { port } = await serve(app, { port: 0, log: () => {} });
  return port;
}
