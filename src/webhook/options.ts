import * as v from 'valibot';
import { invalid } from '../core/error.ts';
import { checkOptions, type OptionNames } from '../core/options.ts';
import { jsonValue } from '../protocol/json-value.ts';
import { keysOf } from './sign.ts';

/** Options of the webhooks that an app sends. */
export interface WebhookOptions {
  /**
   * The key from which the secret of each receiver is derived (`app.webhooks.secretFor`); never share it. It is `whsec_` followed by 24 to
   * 64 random bytes in Base64. To rotate it, pass several: each webhook is then signed with all of them.
   */
  readonly secret: string | readonly string[] | undefined;
  /** Also sends to `http` and `https` addresses of this machine, for development and tests. @default false */
  readonly allowLoopback?: boolean;
  /** How often a webhook is sent to a receiver that does not accept it. @default 10 */
  readonly attempts?: number;
  /** Milliseconds that a receiver may take to answer. @default 10000 */
  readonly timeout?: number;
}

const optionNames: OptionNames<WebhookOptions> = {
  secret: true,
  allowLoopback: true,
  attempts: true,
  timeout: true,
};

export function resolveWebhookOptions(options: WebhookOptions): Required<WebhookOptions> {
  checkOptions(options, optionNames, '`webhooks` of waymark()');
  const { secret, allowLoopback = false, attempts = 10, timeout = 10_000 } = options;
  keysOf(secret);
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > 20) {
    throw invalid('`webhooks.attempts` must be a whole number from 1 to 20.');
  }
  if (!(timeout >= 1 && timeout <= 60_000)) {
    throw invalid('`webhooks.timeout` must be from 1 to 60000 ms.');
  }
  return { secret, allowLoopback, attempts, timeout };
}

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
