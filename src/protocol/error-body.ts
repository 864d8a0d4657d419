import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

/** How an error looks on every wire and in every stored snapshot. */
export const errorBody = v.object({
  /** The status, such as `NOT_FOUND`. */
  status: v.string(),
  /** What failed, why, and what to do. */
  message: v.string(),
  /** Facts for programs. */
  details: v.optional(jsonValue),
});
