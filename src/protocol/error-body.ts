import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

/** How an error looks on every wire and in every stored snapshot. */
export const errorBody = v.object({
  status: v.string(),
  message: v.string(),
  details: v.optional(jsonValue),
});
