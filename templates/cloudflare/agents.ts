import { waymark } from 'waymark';
import type { DurableObjectParts } from 'waymark/durable-object';
import { defineDesk } from './desk.ts';
import { model } from './model.ts';

/** The app of a Durable Object, over its store and its alarm. */
export function createApp({ store, engine }: DurableObjectParts) {
  const app = waymark({ model, store, engine });
  defineDesk(app);
  return app;
}
