import * as v from 'valibot';
import type { AgentEnv } from '../agent/define/common-spec.ts';
import { createCustomAgent } from '../agent/define/custom-agent.ts';
import { failedPrecondition, hasStatus, WaymarkError } from '../core/error.ts';
import { defined, type Json } from '../core/json/json.ts';
import { sha256Hex } from '../core/platform.ts';
import { jsonValue } from '../protocol/json-value.ts';
import { parseShape } from '../protocol/parse.ts';
import { deliver } from './deliver.ts';
import type { DeliverySlots } from './delivery-slots.ts';
import type { Webhook, WebhookOptions } from './options.ts';

interface FeedRun {
  readonly owner: string | undefined;
  readonly signal: AbortSignal;
}

/** Yields the webhooks to send. Called again from the start when another process continues the feed: events must have the same ids. */
export type FeedSource = (data: Json, run: FeedRun) => AsyncIterable<Webhook>;

export type WebhookFeed = ReturnType<typeof createFeed>;

const feedInput = v.object({ data: jsonValue, owner: v.optional(v.string()) });

interface FeedContext {
  readonly env: AgentEnv;
  readonly options: Required<WebhookOptions>;
  readonly slots: DeliverySlots;
}

/** Creates the agent whose runs deliver webhooks. It is no agent of the app: clients cannot reach it. */
export function createFeed(name: string, source: FeedSource, { env, options, slots }: FeedContext) {
  const { clock } = env.host;
  const agent = createCustomAgent(
    { name, title: false },
    async (session) => {
      await session.run(async ({ message }, { signal }) => {
        const [part] = message?.content ?? [];
        const { data, owner } = parseShape(feedInput, part && 'data' in part && part.data, 'feed');
        const step = session.step.bind(session);
        for await (const webhook of source(data, { owner, signal })) {
          const id = publicId(name, owner, webhook.id);
          await deliver({ ...webhook, id }, options, { clock, signal, owner, slots, step });
        }
      });
    },
    env,
  );
  if (!agent.metadata.detachable) {
    throw failedPrecondition(
      'Webhooks are stored before they are sent. Give the app a store that can run turns in the background.',
    );
  }
  return {
    /** The agent that delivers them. Each feed is a session of it, with the feed's id. */
    agent,
    /** Refuses one more feed of an owner that has this many open, in all processes. */
    async checkRoom(owner: string | undefined, most: number): Promise<void> {
      if (owner === undefined) return;
      const { items } = await agent.listRuns({ owner, limit: most });
      if (items.length < most) return;
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${most} webhooks of this owner have not been delivered yet, which is the limit. Try again when one has been.`,
        { details: { retryAfter: 10 } },
      );
    },
    /**
     * Stores the feed, and then begins to send. Resolves when it is stored: from then on it survives this process. `false` if there
     * is a feed with this id already; with `again`, only while that one is running.
     */
    async start(
      id: string,
      data: Json,
      {
        owner,
        again = false,
      }: { readonly owner?: string | undefined; readonly again?: boolean } = {},
    ): Promise<boolean> {
      const owned = defined({ owner });
      const { stream } = agent.stream(
        { role: 'user', content: [{ data: { data, ...owned } }] },
        {
          sessionId: id,
          ...(!again && { ifHead: null }),
          // Not detached: it mostly waits, and would take a worker's slot for that.
          accept: true,
          ...owned,
        },
      );
      try {
        // The run is stored when its first chunk comes; leaving the stream does not stop it.
        for await (const _ of stream) break;
        return true;
      } catch (error) {
        if (hasStatus(error, 'ABORTED')) return false;
        throw error;
      }
    },
  };
}

/** The id that receivers see: it tells nothing, and differs between owners. */
function publicId(name: string, owner: string | undefined, id: string): string {
  return `msg_${sha256Hex(JSON.stringify([name, owner ?? null, id])).slice(0, 32)}`;
}
