import type { Agent } from '../../agent/contract/agent.ts';
import type { A2aServerOptions } from '../http/handler-options.ts';
import type { Fields } from '../http/json-rpc.ts';
import type { RequestContext } from '../http/server-context.ts';
import type { PushFeed } from './push-feed.ts';
import type { Version } from './shapes.ts';

export interface A2aServer {
  readonly options: A2aServerOptions;
  /** Absent where the app sends no webhooks. */
  readonly push: PushFeed | undefined;
}

export interface A2aRequest extends A2aServer {
  readonly agent: Agent;
  readonly version: Version;
  /** As in 1.0. */
  readonly method: string;
  /** In the shape of 1.0. */
  readonly params: Fields;
  readonly c: RequestContext;
  readonly headers: Record<string, string>;
}

export function offeredAgents(c: RequestContext, { agents }: A2aServerOptions): readonly Agent[] {
  const { app } = c.get('server');
  return app
    .agents()
    .filter((agent) => canHaveTasks(agent) && (agents?.includes(agent.name) ?? true));
}

/** Whether an agent can have tasks, which are background runs. */
export function canHaveTasks({ metadata }: Agent): boolean {
  return metadata.detachable && metadata.watchable && metadata.timeline;
}
