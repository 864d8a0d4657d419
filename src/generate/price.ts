import { WaymarkError } from '../core/error.ts';
import { providerName } from '../core/provider-name.ts';
import type { Cost, Usage } from '../protocol/turn.ts';
import type { Model } from './model.ts';

/** The model of a call that is to be priced. */
export interface PricedModel {
  /** Its name in the app, such as `openai.responses/gpt-5`. */
  readonly name: string;
  /** The provider's own name of it, such as `gpt-5`. */
  readonly id: string;
  /** The provider by its name in OpenTelemetry's conventions, such as `openai` or `gcp.gemini`; `undefined` if unknown. */
  readonly provider: string | undefined;
}

/**
 * What a model call costs, in integer micro-units by currency: `{ USD: 1500 }` is $0.0015. `undefined`: there is no price
 * for the model.
 */
export type Price = (model: PricedModel, usage: Usage) => Cost | undefined;

/** The model with the app's price, unless it has its own. */
export function withPrice(model: Model, price: Price | undefined): Model {
  if (price === undefined || model.price !== undefined) return model;
  const { name, modelId: id = name, provider } = model;
  const priced = {
    name,
    id,
    provider: provider === undefined ? undefined : providerName(provider),
  };
  return { ...model, price: (usage) => price(priced, usage) };
}

/** The usage of a call with its cost, if the model has a price. A price that is not an amount of money is an error. */
export function pricedUsage({ name, price }: Model, usage: Usage | undefined): Usage | undefined {
  // A model that says what its call has cost knows it best.
  if (usage === undefined || usage.cost !== undefined || price === undefined) return usage;
  const cost = price(usage);
  if (cost === undefined) return usage;
  checkCost(cost, `The result of \`price\` for model "${name}"`);
  return { ...usage, cost };
}

/** Rejects a cost that is not an amount of money; `what` names it at the start of the message. */
export function checkCost(cost: Cost, what: string): void {
  const amounts: readonly unknown[] =
    typeof cost === 'object' && cost !== null ? Object.values(cost) : [undefined];
  if (amounts.every((micros) => Number.isSafeInteger(micros) && Number(micros) >= 0)) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `${what} is not an amount of money. Pass integer micro-units by currency, such as { USD: 1500 } for $0.0015.`,
  );
}
