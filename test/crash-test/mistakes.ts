/** An app with three mistakes that a crash shows, and the same app without them. */
import { type App, memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

/** Systems that outlive the processes of the app. */
export interface World {
  readonly charges: { readonly order: number; readonly key?: string }[];
  readonly mails: string[];
}

const order = z.object({ order: z.number() });

function shopModel() {
  return scriptedModel([
    { toolCalls: [{ name: 'charge', input: { order: 7 } }] },
    { toolCalls: [{ name: 'add_points', input: { order: 7 } }] },
    { toolCalls: [{ name: 'show_points', input: {} }] },
    'Order 7 is charged.',
  ]);
}

export function wrongApp(world: World): App {
  const app = waymark({ model: shopModel(), store: memoryStore() });
  let points = 0;
  const charge = app.defineTool(
    { name: 'charge', description: 'Charges an order', input: order },
    (input) => {
      world.charges.push(input);
      return 'charged';
    },
  );
  const add = app.defineTool(
    {
      name: 'add_points',
      description: 'Adds points',
      input: order,
      metadata: { annotations: { idempotentHint: true } },
    },
    () => {
      points += 10;
      return 'added';
    },
  );
  const show = app.defineTool(
    {
      name: 'show_points',
      description: 'The points',
      metadata: { annotations: { readOnlyHint: true } },
    },
    () => points,
  );
  app.defineAgent({
    name: 'desk',
    system: () => {
      world.mails.push('A customer is waiting');
      return 'You sell things.';
    },
    tools: [charge, add, show],
  });
  return app;
}

export function rightApp(world: World): App {
  const app = waymark({ model: shopModel(), store: memoryStore() });
  const state = z.object({ points: z.number() });
  const charge = app.defineTool(
    { name: 'charge', description: 'Charges an order', input: order },
    (input, { idempotencyKey: key }) => {
      if (world.charges.every((known) => known.key !== key)) world.charges.push({ ...input, key });
      return 'charged';
    },
  );
  const add = app.defineTool(
    {
      name: 'add_points',
      description: 'Adds points',
      input: order,
      state,
      metadata: { annotations: { idempotentHint: true } },
    },
    (_, { session }) => {
      session.updateCustom((draft) => {
        draft.points += 10;
      });
      return 'added';
    },
  );
  const show = app.defineTool(
    {
      name: 'show_points',
      description: 'The points',
      state,
      metadata: { annotations: { readOnlyHint: true } },
    },
    (_, { session }) => session.custom.points,
  );
  app.defineAgent({
    name: 'desk',
    system: 'You sell things.',
    state,
    initialState: { points: 0 },
    tools: [charge, add, show],
  });
  return app;
}
