import type { Agent } from '../agent/contract/agent.ts';
import type { AgentEnv } from '../agent/define/common-spec.ts';
import { sha256Hex } from '../core/platform.ts';
import { parseShape } from '../protocol/parse.ts';
import { DeliverySlots } from './delivery-slots.ts';
import { checkDestination, parseDestination } from './destination.ts';
import { createFeed, type FeedSource, type WebhookFeed } from './feed.ts';
import {
  resolveWebhookOptions,
  type Webhook,
  type WebhookOptions,
  webhook as webhookShape,
} from './options.ts';
import { receiverSecrets } from './sign.ts';

/** Sends signed webhooks. They are stored before they are sent, and survive this process. */
export interface Webhooks {
  /**
   * Sends an event. Resolves when it is stored. An event whose `id` this owner has sent before is not sent again, unless it
   * could not be delivered; `false` says so.
   */
  send(webhook: Webhook, options?: { readonly owner?: string | undefined }): Promise<boolean>;
  /**
   * The secret by which a receiver verifies its webhooks. It is derived from the app's secret, the owner and the URL, so give each receiver
   * its own.
   */
  secretFor(url: string, options?: { readonly owner?: string | undefined }): string;
  /**
   * Checks a URL to send to; INVALID_ARGUMENT for one that does not lead to a public https address now. It is checked again when it is
   * used.
   */
  checkUrl(url: string): Promise<void>;
}

type DefineFeed = (name: string, source: FeedSource) => WebhookFeed;

/** Makes {@link defineFeed} available to this package only. */
const feeds = new WeakMap<Webhooks, DefineFeed>();

/** Declares webhooks that follow something; once per name and app. */
export function defineFeed(webhooks: Webhooks, name: string, source: FeedSource): WebhookFeed {
  const define = feeds.get(webhooks);
  if (define === undefined) throw new TypeError('These webhooks belong to no app.');
  return define(name, source);
}

/** Webhooks of one owner that have not been delivered yet. */
const maxUndelivered = 1_000;

/** The webhooks of an app; `add` makes an agent known to the engine, so that a run of it can be taken over. */
export function createWebhooks(
  given: WebhookOptions,
  env: AgentEnv,
  add: (agent: Agent) => void,
): Webhooks {
  const options = resolveWebhookOptions(given);
  const slots = new DeliverySlots();
  const define: DefineFeed = (name, source) => {
    const feed = createFeed(`waymark.${name}`, source, { env, options, slots });
    add(feed.agent);
    return feed;
  };
  const events = define('webhooks', async function* (data) {
    yield parseShape(webhookShape, data, 'webhook');
  });
  const webhooks: Webhooks = {
    checkUrl: (url) => checkDestination(url, options),
    secretFor(url, { owner } = {}) {
      const { href } = parseDestination(url, options);
      return receiverSecrets(options.secret, { url: href, owner })[0] ?? '';
    },
    async send(webhook, of = {}) {
      const parsed = parseShape(webhookShape, webhook, 'webhook');
      // A name that cannot be resolved now is tried again by the delivery.
      await checkDestination(parsed.url, { ...options, mayBeUnknown: true });
      await events.checkRoom(of.owner, maxUndelivered);
      // Session ids are limited in length, and those of others say what they are about.
      const id = sha256Hex(parsed.id);
      return await events.start(id, parsed, of);
    },
  };
  feeds.set(webhooks, define);
  return webhooks;
}
