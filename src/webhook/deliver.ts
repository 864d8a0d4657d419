import { WaymarkError } from '../core/error.ts';
import type { DatesAsText } from '../core/json/dates.ts';
import { backoff } from '../core/time/backoff.ts';
import type { Clock } from '../core/time/clock.ts';
import type { DeliverySlots } from './delivery-slots.ts';
import type { WebhookOptions } from './options.ts';
import { type PostResult, post } from './post.ts';
import { receiverSecrets, signWebhook } from './sign.ts';
import type { Webhook } from './webhook.ts';

/** What a delivery needs of its run. */
export interface DeliveryRun {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The owner that the webhook is sent for. */
  readonly owner: string | undefined;
  /** Bounds the open requests of this process. */
  readonly slots: DeliverySlots;
  /** Does something once per run, also when another process continues the run. */
  step<Value>(key: string, fn: () => Promise<Value>): Promise<DatesAsText<Value>>;
}

/** Milliseconds before the second attempt, and at most between two. Ten attempts take 17 minutes. */
const delays = { baseMs: 2_000, maxMs: 600_000 };

/**
 * Sends an event until its receiver accepts it. Each attempt is recorded, so that a process that takes over the run continues
 * with the next one; only an attempt during which a process died is made again, under the same id.
 */
export async function deliver(
  webhook: Webhook,
  options: Required<WebhookOptions>,
  { clock, signal, owner, slots, step }: DeliveryRun,
): Promise<void> {
  const body = JSON.stringify(webhook.body);
  const secrets = receiverSecrets(options.secret, { url: webhook.url, owner });
  const send = (attempt: number): Promise<{ result: PostResult; at: number }> =>
    step(`${webhook.id} ${attempt}`, async () => {
      const now = clock.now();
      const signed = { id: webhook.id, timestamp: Math.floor(now / 1000), body };
      const headers = {
        ...webhook.headers,
        'content-type': 'application/json',
        'user-agent': 'waymark-webhooks',
        ...signWebhook(signed, secrets),
      };
      const sent = await post({ url: webhook.url, headers, body, signal }, options);
      // What was cut off by a stop is no attempt.
      signal.throwIfAborted();
      return { result: sent, at: clock.now() };
    });
  const { host } = new URL(webhook.url);
  for (let attempt = 1; ; attempt++) {
    const { result, at } = await slots.run({ owner, host }, signal, () => send(attempt));
    if ('status' in result) return;
    if (result.isFinal || attempt >= options.attempts) throw failed(webhook, result, attempt);
    const due = at + backoff(attempt, delays);
    await clock.sleep(Math.max(0, due - clock.now()), signal);
  }
}

function failed(
  { id, url }: Webhook,
  result: Extract<PostResult, { readonly error: string }>,
  attempts: number,
): WaymarkError {
  const { origin } = new URL(url);
  return new WaymarkError(
    'UNAVAILABLE',
    `Webhook ${id} could not be delivered to ${origin} in ${attempts} attempts. ${result.error}`,
    { publicMessage: `The webhook could not be delivered in ${attempts} attempts.` },
  );
}
