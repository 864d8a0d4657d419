import { fromBase64 } from '../core/base64.ts';
import { invalid, WaymarkError } from '../core/error.ts';
import { hmacSha256, timingSafeEqual } from '../core/platform.ts';

/** A secret: `whsec_` and 24 to 64 random bytes as Base64. Several: for rotation. */
type WebhookSecret = string | readonly string[];

interface SignedContent {
  /** The same for every attempt to deliver an event. Receivers ignore an id that they have seen. */
  readonly id: string;
  /** Seconds since the epoch. */
  readonly timestamp: number;
  /** The body as it is sent. */
  readonly body: string;
}

/** The headers of Standard Webhooks for a body. With several secrets there is a signature of each, so that receivers can change over. */
export function signWebhook(
  { id, timestamp, body }: SignedContent,
  secret: WebhookSecret | undefined,
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const signatures = keysOf(secret).map((key) => signatureOf(key, { id, timestamp, body }));
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

/**
 * Checks the signature and the age of a webhook; UNAUTHENTICATED if either is wrong. Pass the body as it arrived, before it is
 * parsed. An event may arrive more than once: ignore an `id` that you have seen.
 *
 * @example
 * const body = await request.text();
 * const { id } = verifyWebhook(body, request.headers, { secret: process.env.WEBHOOK_SECRET });
 */
export function verifyWebhook(
  body: string,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  {
    secret,
    tolerance = 300_000,
    now = Date.now(),
  }: {
    readonly secret: WebhookSecret | undefined;
    /** Milliseconds by which the timestamp may differ from the time of this machine. @default 300000 */
    readonly tolerance?: number;
    /** Milliseconds since the epoch. @default the current time */
    readonly now?: number;
  },
): { readonly id: string; readonly timestamp: number } {
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value === 'string' && value !== '') return value;
    throw refused(`It has no header ${name}.`);
  };
  const id = header('webhook-id');
  const seconds = header('webhook-timestamp');
  const timestamp = /^\d{1,12}$/.test(seconds) ? Number(seconds) : Number.NaN;
  if (!(Math.abs(now - timestamp * 1000) <= tolerance)) {
    throw refused('Its timestamp is too old, or too far in the future.');
  }
  const given = header('webhook-signature').split(' ').slice(0, 16);
  const expected = keysOf(secret).map((key) => signatureOf(key, { id, timestamp, body }));
  const isKnown = given.some((signature) =>
    expected.some((right) => timingSafeEqual(signature, right)),
  );
  if (!isKnown) throw refused('Its signature is not one of the secret.');
  return { id, timestamp };
}

export interface Receiver {
  readonly url: string;
  readonly owner?: string | undefined;
}

/**
 * The secrets of one receiver, one for each secret of the app. They are derived from its owner and its URL, so that a receiver can
 * verify what is sent to it and cannot sign for others.
 */
export function receiverSecrets(
  secret: WebhookSecret | undefined,
  { url, owner }: Receiver,
): readonly string[] {
  const named = `waymark webhook 1\n${JSON.stringify([owner ?? null, new URL(url).href])}`;
  return keysOf(secret).map((key) => `whsec_${hmacSha256(key, named, 'base64')}`);
}

/** The keys of a secret; INVALID_ARGUMENT for one that is too short or no Base64. */
export function keysOf(secret: WebhookSecret | undefined): readonly Uint8Array[] {
  const secrets = typeof secret === 'string' ? [secret] : (secret ?? []);
  if (secrets.length === 0) throw badSecret();
  return secrets.map((each) => {
    const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(each)) ?? [];
    const key = encoded === undefined ? undefined : fromBase64(encoded);
    if (key === undefined || key.length < 24 || key.length > 64) throw badSecret();
    return key;
  });
}

function signatureOf(key: Uint8Array, { id, timestamp, body }: SignedContent): string {
  return `v1,${hmacSha256(key, `${id}.${timestamp}.${body}`, 'base64')}`;
}

function badSecret(): WaymarkError {
  return invalid(
    'The secret of webhooks must be "whsec_" and 24 to 64 random bytes as Base64. Is the environment variable it comes from set? Create one with: echo "whsec_$(openssl rand -base64 32)".',
  );
}

function refused(why: string): WaymarkError {
  return new WaymarkError('UNAUTHENTICATED', `The webhook is not genuine. ${why}`);
}
