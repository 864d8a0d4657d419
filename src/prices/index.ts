/**
 * List prices of models.
 *
 * @module
 */

export type { Price } from '../generate/answer/price.ts';
export type { Cost, Usage } from '../protocol/turn.ts';
export { type CalcPrice, priceTable } from './price-table.ts';
