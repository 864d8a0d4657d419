import { invalid } from '../../core/error.ts';
import { uuidv7 } from '../../core/id.ts';
import { defined, toJson } from '../../core/json/json.ts';
import { sha256Hex } from '../../core/platform.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { FeedSource, WebhookFeed } from '../../webhook/feed.ts';
import type { Webhook } from '../../webhook/options.ts';
import { defineFeed, type Webhooks } from '../../webhook/webhooks.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import type { Fields, RpcError } from '../http/json-rpc.ts';
import type { ServedApp } from '../http/served-app.ts';
import { findAgent, type ServerContext } from '../http/server-context.ts';
import { a2aError, codes } from './errors.ts';
import { toLegacyTask } from './legacy.ts';
import { type Followed, followed, type PushConfig, type Version } from './shapes.ts';
import { describeTask, type OpenTask, readTask, stateOf, waitForTask } from './task.ts';

/** Push notifications of tasks. A configuration is a session of the agent that delivers them, so there is no table of them. */
export interface PushFeed {
  /** Refuses an address that is not allowed, and a caller with too many open configurations. */
  check(url: string, caller: Caller): Promise<void>;
  /** The secret by which the receiver of a configuration verifies its notifications. */
  secretFor(url: string, caller: Caller): string;
  /** Stores a configuration and notifies from now on. */
  set(task: OpenTask, config: PushConfig, version: Version): Promise<Fields>;
  /** Notifies again after an answer has continued the task. */
  continue(task: OpenTask): Promise<void>;
  list(task: OpenTask): Promise<readonly Fields[]>;
  delete(task: OpenTask, id: string): Promise<void>;
}

const maxConfigs = 10;

const feeds = new WeakMap<Webhooks, WebhookFeed>();

/** The push notifications of an app; `undefined` if it sends no webhooks. */
export function createPushFeed({ app, limits }: ServerContext): PushFeed | undefined {
  const { webhooks } = app;
  if (!webhooks) return undefined;
  // Several servers of one app share it.
  const feed = feeds.get(webhooks) ?? defineFeed(webhooks, 'a2a-push', notificationsOf(app));
  feeds.set(webhooks, feed);
  const configsOf = async (task: OpenTask): Promise<readonly SessionInfo[]> => {
    const { snapshotId } = task.root;
    const options = { ...ownerOf(task.caller), query: snapshotId, limit: 100 };
    const { items } = await feed.agent.listSessions(options);
    return items.filter(({ sessionId, metadata }) => {
      const isOfAgent = metadata?.agent === task.agent.name;
      return isOfAgent && sessionId.startsWith(`${snapshotId}.`);
    });
  };
  return {
    async check(url, { principal }) {
      await webhooks.checkUrl(url);
      await feed.checkRoom(principal, limits.backgroundRunsPerPrincipal);
    },
    secretFor: (url, caller) => webhooks.secretFor(url, ownerOf(caller)),
    async set(task, given, version) {
      checkHeaders(given);
      const { snapshotId: taskId } = task.root;
      const config = { ...given, taskId, id: given.id ?? uuidv7(Date.now()) };
      const sessionId = sessionIdOf(taskId, config.id);
      const known = await configsOf(task);
      const others = known.filter((each) => each.sessionId !== sessionId);
      if (others.length >= maxConfigs) throw tooMany();
      if (others.length < known.length) await remove(feed, task, sessionId);
      const data = { agent: task.agent.name, taskId, version, config };
      const owner = ownerOf(task.caller);
      const metadata = toJson(data, 'The configuration');
      await feed.start(sessionId, metadata, { ...owner, again: true });
      await feed.agent.updateSession(sessionId, { metadata }, owner);
      return describeConfig(data);
    },
    async continue(task) {
      for (const config of await configsOf(task)) await startAgain(feed, task, config);
    },
    async list(task) {
      return (await configsOf(task)).map(({ metadata }) =>
        describeConfig(parseShape(followed, metadata, 'configuration')),
      );
    },
    delete: (task, id) => remove(feed, task, sessionIdOf(task.root.snapshotId, id)),
  };
}

/** The notifications of one configuration: each state in which the task stops. */
function notificationsOf(app: ServedApp): FeedSource {
  return async function* (data, { owner, signal }) {
    const { agent: name, taskId, version, config } = parseShape(followed, data, 'configuration');
    const agent = findAgent(app.agents(), name);
    const options = defined({ signal, owner });
    for (let last = ''; ; ) {
      const found = await readTask(agent, taskId, options);
      if (!found) return;
      const task = await waitForTask(found, options);
      const id = `${taskId} ${config.id} ${task.tip.snapshotId} ${stateOf(task)}`;
      // Nothing new since the last notification: the task has ended, or waits for an answer, which starts this again.
      if (id === last) return;
      last = id;
      const shown = await describeTask(task, options);
      const body = version === '1.0' ? { task: shown } : toLegacyTask(shown);
      yield { id, url: config.url, body: toJson(body, 'The task'), headers: headersOf(config) };
    }
  };
}

function headersOf({ token, authentication }: PushConfig): NonNullable<Webhook['headers']> {
  const { scheme, credentials } = authentication ?? {};
  const authorization = credentials === undefined ? scheme : scheme && `${scheme} ${credentials}`;
  return defined({ 'x-a2a-notification-token': token, authorization });
}

function checkHeaders(config: PushConfig): void {
  const isFine = Object.values(headersOf(config)).every((value) =>
    /^[\x20-\x7e]{1,4096}$/.test(value),
  );
  if (isFine) return;
  throw invalid(
    'The token and the credentials of a push notification must be printable ASCII, at most 4096 characters.',
  );
}

/** Starts a feed that may just be ending: it could have looked at the task before the answer. */
async function startAgain(
  feed: WebhookFeed,
  { caller }: OpenTask,
  { sessionId, metadata = {} }: SessionInfo,
): Promise<void> {
  const owner = ownerOf(caller);
  for (let tries = 0; tries < 3; tries++) {
    const { running } = (await feed.agent.getSession(sessionId, owner)) ?? {};
    if (await feed.start(sessionId, metadata, { ...owner, again: true })) return;
    if (running === undefined) continue;
    // It still delivers, and looks again afterwards; do not make the client wait for that.
    const run = await feed.agent.getSnapshot({ snapshotId: running }, owner);
    if (run?.status === 'pending') return;
  }
}

async function remove(feed: WebhookFeed, { caller }: OpenTask, sessionId: string): Promise<void> {
  const owner = ownerOf(caller);
  const { running } = (await feed.agent.getSession(sessionId, owner)) ?? {};
  if (running !== undefined) {
    await feed.agent.abort(running, owner);
    await feed.agent.wait(running, owner).catch(() => {});
  }
  await feed.agent.deleteSession(sessionId, owner);
}

function sessionIdOf(taskId: string, configId: string): string {
  return `${taskId}.${sha256Hex(configId).slice(0, 32)}`;
}

function describeConfig({ taskId, config }: Pick<Followed, 'taskId' | 'config'>): Fields {
  const { id, url, token, authentication } = config;
  return { taskId, id, url, token, authentication: authentication ?? undefined };
}

function tooMany(): RpcError {
  return a2aError(
    codes.invalidParams,
    `The task has ${maxConfigs} push notification configurations, which is the limit. Delete one first.`,
  );
}
