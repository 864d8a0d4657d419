import type { Agent } from '../../agent/spec/agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { short } from '../http/errors.ts';
import type { A2aServerOptions } from '../http/handler-options.ts';
import type { Fields, RequestId } from '../http/json-rpc.ts';
import { checkPublicUrl } from '../http/origin.ts';
import type { ServedApp } from '../http/served-app.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
import type { PushFeed } from './push-feed.ts';
import type { Version } from './shapes.ts';

/** The context that all requests share. */
export interface A2aServer {
  readonly serverContext: ServerContext;
  readonly options: A2aServerOptions;
  /** Absent where the app sends no webhooks. */
  readonly push: PushFeed | undefined;
}

/** One request of a client. */
export interface A2aRequest {
  readonly agent: Agent;
  readonly version: Version;
  readonly id: RequestId | null;
  /** As in 1.0. */
  readonly method: string;
  /** In the shape of 1.0. */
  readonly params: Fields;
  /** The HTTP request that it came in. */
  readonly c: RequestContext;
  /** More headers of the response. */
  readonly headers: Record<string, string>;
}

/** The agents that are offered. Tasks are background runs, so an agent needs a store for those. */
export function offeredAgents(app: ServedApp, { agents }: A2aServerOptions): readonly Agent[] {
  return app
    .agents()
    .filter(
      (agent) => canHaveTasks(agent) && (agents === undefined || agents.includes(agent.name)),
    );
}

/** Refuses options that cannot be meant, when the server starts. */
export function checkA2aOptions(app: ServedApp, { agents = [], url }: A2aServerOptions): void {
  checkPublicUrl(url, 'a2a.url');
  for (const name of agents) {
    const agent = app.agents().find((each) => each.name === name);
    if (agent && canHaveTasks(agent)) continue;
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      agent
        ? `a2a.agents names ${short(name)}, which cannot run in the background. Give it a store that can, such as sqliteStore, or leave it out.`
        : `a2a.agents names ${short(name)}, but the app has no such agent. Define it before the server starts.`,
    );
  }
}

function canHaveTasks({ metadata }: Agent): boolean {
  return metadata.detachable && metadata.watchable && metadata.timeline;
}
