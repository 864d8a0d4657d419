import { startFlowServer } from '@genkit-ai/express';
import { genkit, InMemorySessionStore } from 'genkit/beta';
import { disableGenkitOTelInitialization } from 'genkit/tracing';
import { freePort } from '../lib/free-port.ts';
import { emitAnswer } from '../lib/pace.ts';
import { untilListening } from './node-http.ts';
import type { Listen } from './server.ts';

/** A Genkit agent behind its own Express server. */
export const listen: Listen = async (pace) => {
  disableGenkitOTelInitialization();
  const ai = genkit({});
  ai.defineModel({ name: 'instant', supports: { multiturn: true } }, async (_, sendChunk) => {
    const text = await emitAnswer(pace, (piece) => sendChunk?.({ content: [{ text: piece }] }));
    return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
  });
  const store = new InMemorySessionStore();
  const agent = ai.defineAgent({ name: 'bench', model: 'instant', store });
  const port = await freePort();
  startFlowServer({ flows: [agent], port });
  await untilListening(port);
  return port;
};
