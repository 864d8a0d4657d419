import type { App } from 'waymark';
import { z } from 'zod';

/** The state of a session. It is saved with every turn, and clients receive each change. */
const deskState = z.object({
  refunds: z.array(z.object({ order: z.string(), amount: z.number() })),
});

/** A support desk: looks up orders, and refunds them when a person approves. */
export function defineDesk(app: App) {
  const lookUpOrder = app.defineTool(
    {
      name: 'look_up_order',
      description: 'Looks up an order by its number',
      input: z.object({ order: z.string() }),
    },
    ({ order }) => ({ order, item: 'Desk lamp', paid: 40 }),
  );

  const refund = app.defineTool(
    {
      name: 'refund',
      description: 'Refunds an amount of an order',
      input: z.object({ order: z.string(), amount: z.number() }),
      // The session is typed by it, and TypeScript rejects the tool on an agent with another state.
      state: deskState,
      // The turn stops before a refund, until a person approves or declines it.
      needsApproval: true,
    },
    ({ order, amount }, { session }) => {
      session.updateCustom((state) => {
        state.refunds.push({ order, amount });
      });
      return { refunded: amount };
    },
  );

  return app.defineAgent({
    name: 'desk',
    description: 'A support desk. Try "Where is order 7?", then "Refund order 7".',
    system: 'You are a support desk. Look up an order before you refund it.',
    tools: [lookUpOrder, refund],
    state: deskState,
    initialState: { refunds: [] },
  });
}
