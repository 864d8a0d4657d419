import type { LookupAddress } from 'node:dns';
import type { ClientRequest } from 'node:http';
import { isWaymarkError, messageOf, WaymarkError } from '../core/error.ts';
import type { DatesAsText } from '../core/json/dates.ts';
import { backoff, type Clock } from '../core/time.ts';
import type { DeliverySlots } from './delivery-slots.ts';
import { parseDestination, type RequestRules, resolveDestination } from './destination.ts';
import { loadNetwork } from './network.ts';
import type { Webhook, WebhookOptions } from './options.ts';
import { receiverSecrets, signWebhook } from './sign.ts';

interface DeliveryRun {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly owner: string | undefined;
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
      // A request that was cut off by a stop is no attempt.
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

interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** The result of one attempt. With `isFinal` another one would end alike. */
type PostResult =
  | { readonly status: number }
  | { readonly error: string; readonly isFinal: boolean };

const maxResponseLength = 65_536;

/** Posts a body to an address that the rules allow. Follows no redirect and never rejects. */
export async function post(request: PostRequest, options: RequestRules): Promise<PostResult> {
  try {
    const network = loadNetwork();
    const url = parseDestination(request.url, options);
    const address = await resolveDestination(url, options, network);
    const { request: open } = url.protocol === 'https:' ? network.https : network.http;
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(options.timeout)]);
    const sent = open(url, {
      method: 'POST',
      headers: { ...request.headers, 'content-length': String(new Blob([request.body]).size) },
      lookup: pinned(address),
      // A new connection: one that is kept open could lead elsewhere.
      agent: false,
      signal,
    });
    const status = await answerOf(sent, request.body);
    if (status >= 200 && status < 300) return { status };
    const isFinal = status === 410 || (status >= 300 && status < 400);
    return { error: `The receiver answered ${status}.`, isFinal };
  } catch (error) {
    return { error: messageOf(error), isFinal: isWaymarkError(error) };
  }
}

/** The status of the response, as soon as its body has ended or is longer than anyone reads. */
function answerOf(request: ClientRequest, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => {
      const done = (): void => {
        resolve(response.statusCode ?? 0);
        request.destroy();
      };
      let read = 0;
      response.on('data', (data: Uint8Array) => {
        read += data.length;
        if (read > maxResponseLength) done();
      });
      response.once('end', done);
      response.once('error', reject);
    });
    request.end(body);
  });
}

type Lookup = (
  hostname: string,
  options: { readonly all?: boolean | undefined },
  callback: (error: null, address: string | LookupAddress[], family?: number) => void,
) => void;

function pinned({ address, family }: LookupAddress): Lookup {
  return (_hostname, { all }, callback) => {
    if (all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
