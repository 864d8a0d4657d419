import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

/** An agent that a Next application serves. */
export const app = waymark({
  store: memoryStore(),
  model: scriptedModel({
    patterns: [[/^hang/, { chunks: ['It ', 'hangs'], hang: true }]],
    otherwise: 'Hello.',
  }),
});
app.defineAgent({ name: 'chat' });
