import type { AgentEnv } from '../agent/define/common-spec.ts';
import type { Agent } from '../agent/spec/agent.ts';
import { sha256Hex } from '../core/platform.ts';
import { parseShape } from '../protocol/parse.ts';
import { parseDestination } from './destination.ts';
import { createFeed, type FeedSource, type WebhookFeed } from './feed.ts';
import { resolveWebhookOptions, type WebhookOptions } from './options.ts';
import { type Webhook, webhook as webhookShape } from './webhook.ts';

/** Sends signed webhooks. They are stored before they are sent, and survive this process. */
export interface Webhooks {
  /**
   * Sends an event. Resolves when it is stored. An event whose `id` this owner has sent before is not sent again, unless it
   * could not be delivered; `false` says so.
   */
  send(webhook: Webhook, options?: { readonly owner?: string | undefined }): Promise<boolean>;
  /** Checks a URL to send to; INVALID_ARGUMENT for one that can never be allowed. What its name resolves to is checked when it is used. */
  checkUrl(url: string): void;
  /** Declares webhooks that follow something; once per name and app. */
  defineFeed(name: string, source: FeedSource): WebhookFeed;
}

/** The webhooks of an app; `add` makes an agent known to the engine, so that a run of it can be taken over. */
export function createWebhooks(
  given: WebhookOptions,
  env: AgentEnv,
  add: (agent: Agent) => void,
): Webhooks {
  const options = resolveWebhookOptions(given);
  const defineFeed: Webhooks['defineFeed'] = (name, source) => {
    const feed = createFeed(`waymark.${name}`, source, { env, options });
    add(feed.agent);
    return feed;
  };
  const events = defineFeed('webhooks', async function* (data) {
    yield parseShape(webhookShape, data, 'webhook');
  });
  const checkUrl = (url: string): void => void parseDestination(url, options);
  return {
    checkUrl,
    defineFeed,
    async send(webhook, of = {}) {
      const parsed = parseShape(webhookShape, webhook, 'webhook');
      checkUrl(parsed.url);
      // Session ids are limited in length, and those of others say what they are about.
      const id = sha256Hex(parsed.id);
      return await events.start(id, parsed, of);
    },
  };
}
