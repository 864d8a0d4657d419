import { type App, type ModelRef, WaymarkError } from 'waymark';
import { z } from 'zod';
import { deskScript } from './script.ts';
import type { Shop } from './shop.ts';

// #region state
const refund = z.object({ order: z.string(), euros: z.number(), payment: z.string() });

/** The state of a conversation. It is saved with every turn, and the page shows it live. */
const deskState = z.object({ customer: z.string().optional(), refunds: z.array(refund) });
// #endregion

// #region employee
/** Who is signed in. It comes from `auth`, so neither the page nor the model can change it. */
export const employee = z.object({ name: z.string(), refundLimit: z.number() });
export type Employee = z.infer<typeof employee>;
// #endregion

/** A support desk: looks up orders, and refunds them when the employee approves. */
export function defineDesk(app: App, shop: Shop, model: ModelRef = deskScript()) {
  const existingOrder = (id: string) => {
    const found = shop.findOrder(id);
    if (found) return found;
    throw new WaymarkError('NOT_FOUND', `There is no order ${id}. Ask for the number again.`);
  };

  // #region look-up
  const lookUpOrder = app.defineTool(
    {
      name: 'look_up_order',
      description: 'Looks up an order by its number',
      input: z.object({ order: z.string() }),
      state: deskState,
    },
    ({ order }, { session }) => {
      const { customer, item, paid } = existingOrder(order);
      session.updateCustom((draft) => {
        draft.customer = customer;
      });
      return { order, customer, item, paid };
    },
  );
  // #endregion

  // #region refund
  const refundOrder = app.defineTool(
    {
      name: 'refund',
      description: 'Refunds money for an order. The employee must approve.',
      input: z.object({ order: z.string(), euros: z.number().positive() }),
      state: deskState,
    },
    ({ order, euros }, { session, context, interrupt, resumed, idempotencyKey }) => {
      const { paid } = existingOrder(order);
      const { refundLimit } = employee.parse(context);
      // The shop knows all conversations; the state of this one may have been restored from an earlier turn.
      const refunded = shop.refunded(order, idempotencyKey);
      // The model gets the message of an error, and can tell the employee.
      if (euros > paid - refunded) throw new Error(`Only ${paid - refunded} € can be refunded.`);
      if (euros > refundLimit) throw new Error(`You may refund up to ${refundLimit} €.`);
      if (resumed === undefined) interrupt({ question: `Refund ${euros} € of order ${order}?` });
      const payment = shop.refund({ order, euros, key: idempotencyKey });
      session.updateCustom((draft) => {
        draft.refunds.push({ order, euros, payment });
      });
      session.addArtifacts({
        name: `receipt-${payment}.md`,
        parts: [{ text: `# Refund ${payment}\n\n${euros} € of order ${order}\n` }],
      });
      return { refunded: euros, payment };
    },
  );
  // #endregion

  // #region agent
  return app.defineAgent({
    name: 'desk',
    description: 'A support desk. Try “Where is order 7?”, then “Refund 15 of order 7”.',
    model,
    system: ({ context, state }) =>
      `You help ${context.name ?? 'the team'} at a support desk. Look up an order before you refund it.` +
      (state.customer ? ` The customer is ${state.customer}.` : ''),
    tools: [lookUpOrder, refundOrder],
    state: deskState,
    initialState: { refunds: [] },
    limits: { turn: { timeout: 120_000, toolCalls: 10 } },
  });
  // #endregion
}

/** The type of the agent, for the page. */
export type Desk = ReturnType<typeof defineDesk>;
