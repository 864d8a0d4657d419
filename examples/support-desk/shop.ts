/** An order of the shop. */
export interface Order {
  readonly customer: string;
  readonly item: string;
  readonly paid: number;
}

/** The systems of the shop that the desk works with. Replace them with yours. */
export interface Shop {
  findOrder(order: string): Order | undefined;
  /** Pays money back, once per key, and returns the number of the payment. */
  refund(payment: { order: string; euros: number; key: string }): string;
  /** How much of an order was paid back, without the payment of this key. */
  refunded(order: string, exceptKey: string): number;
  readonly payments: ReadonlyMap<string, { readonly order: string; readonly euros: number }>;
}

/** A shop with three orders, in memory. */
export function demoShop(): Shop {
  const orders = new Map<string, Order>([
    ['7', { customer: 'Ines', item: 'Desk lamp', paid: 40 }],
    ['8', { customer: 'Ines', item: 'Bookshelf', paid: 260 }],
    ['9', { customer: 'Tom', item: 'Armchair', paid: 480 }],
  ]);
  const payments = new Map<string, { order: string; euros: number }>();
  return {
    payments,
    findOrder: (order) => orders.get(order),
    refunded: (order, exceptKey) =>
      [...payments]
        .filter(([key, payment]) => payment.order === order && key !== exceptKey)
        .reduce((sum, [, { euros }]) => sum + euros, 0),
    refund({ order, euros, key }) {
      // The same key again is the same payment: a process that takes over a turn may repeat the call.
      if (!payments.has(key)) payments.set(key, { order, euros });
      return `p-${[...payments.keys()].indexOf(key) + 1}`;
    },
  };
}
