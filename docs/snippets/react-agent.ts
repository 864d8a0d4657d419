import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

export const app = waymark({
  model: scriptedModel({ patterns: [], otherwise: 'Hello.' }),
  store: memoryStore(),
});
export const chat = app.defineAgent({
  name: 'chat',
  state: z.object({ topics: z.array(z.string()) }),
});
