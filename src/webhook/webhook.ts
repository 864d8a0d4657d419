import * as v from 'valibot';
import { jsonValue } from '../protocol/json-value.ts';

export const webhook = v.object({
  /** Identifies the event: it is the same however often it is sent. */
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
  /** Where to send it: a public https address. */
  url: v.string(),
  /** The body, sent as JSON. */
  body: jsonValue,
  /** Further headers, such as a token of the receiver. */
  headers: v.optional(v.record(v.string(), v.string())),
});

/** An event to send. */
export interface Webhook extends v.InferOutput<typeof webhook> {}
