import type { Agent } from '../agent/contract/agent.ts';
import type { AgentStore } from '../agent/contract/spec.ts';
import { internalsOf } from '../agent/define/create-agent.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import { requestKey } from '../agent/turn/inputs.ts';
import type { StartedRun } from '../api/agent-api.ts';
import {
  failedPrecondition,
  hasStatus,
  isWaymarkError,
  messageOf,
  WaymarkError,
} from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { scopeOf } from '../protocol/ids.ts';
import { type RunRecord, type RunRef, requestTtl, waitingTtl } from '../store/contract/store.ts';
import {
  checkSchedule,
  inputOf,
  nameOf,
  nextTime,
  type Schedule,
  type ScheduleInfo,
  textOf,
  timesOf,
} from './schedule.ts';

/*
 * For each schedule, a run waits in the store until its next time, as the deadline of an interrupt does. The process that takes it over when
 * it has expired starts the run, under a request id made of the key and the time, and then lets the next one wait.
 */

/** The name under which they wait. No agent of an app can have it. */
const scope = { agent: 'waymark.schedules/times' };
/** The name in the claim of one that waits: no worker holds it. */
const waitingWorker = 'schedule';

/** How far apart the clocks of two processes may be, in milliseconds. A time that is later than it can be was set by a wrong clock. */
const maxSkew = 60_000;
/** Milliseconds after which a time is deleted that no process has taken, because no app has its schedule any more: a week. */
const keptFor = 604_800_000;

/** A time that waits in the store. */
interface Waiting {
  readonly run: RunRecord;
  readonly key: string;
  readonly due: number;
  /** The `cron` or `every` that it follows from. */
  readonly times: string;
  readonly last: ScheduleInfo['last'];
}

/** The schedules of an app. */
export interface Schedules {
  /** Declares one. */
  add(schedule: Schedule): void;
  /** Refuses those whose agent or times do not exist. */
  check(): Promise<void>;
  /** Starts the runs of these agents that are due, and lets the next times wait. Resolves to the number that were due. */
  look(store: AgentStore, agents: readonly Agent[]): Promise<number>;
  /** Milliseconds until the next time of those that were looked at. */
  untilNext(): number | undefined;
  list(): Promise<readonly ScheduleInfo[]>;
  /** Starts a run now. */
  run(key: string): Promise<StartedRun>;
}

export function createSchedules(
  host: AgentHost,
  findAgent: (name: string) => Agent | undefined,
): Schedules {
  const { clock, ttl } = host;
  const schedules = new Map<string, Schedule>();
  /** Keys of the schedules whose time in the store was compared with the code. */
  const compared = new Set<string>();
  const swept = new WeakSet<AgentStore>();
  const starting = new Set<string>();
  const nextTimes = new Map<string, number>();
  /** The last error of each, so that an outage is reported once. */
  const troubles = new Map<string, string>();

  const agentOf = ({ key, agent }: Schedule): Agent => {
    const name = nameOf(agent);
    const found = findAgent(name);
    if (found !== undefined) return found;
    throw new WaymarkError(
      'NOT_FOUND',
      `Schedule "${key}" is for agent "${name}", which this app does not define.`,
    );
  };
  const runsOf = (schedule: Schedule) => {
    const { runs } = internalsOf(agentOf(schedule)).spec.store ?? {};
    if (runs !== undefined) return runs;
    throw failedPrecondition(
      `Schedule "${schedule.key}" needs a store that supports claims, such as sqliteStore. The store of agent "${nameOf(schedule.agent)}" does not.`,
    );
  };
  const report = ({ key, agent }: Schedule, cause: unknown, due?: number): void => {
    const why = messageOf(cause);
    if (troubles.get(key) === why) return;
    troubles.set(key, why);
    const status = isWaymarkError(cause) ? cause.status : 'INTERNAL';
    const time = due === undefined ? '' : ` for ${textOf(due)}`;
    const message = `Schedule "${key}" did not start its run${time}: ${why}`;
    const error = new WaymarkError(status, message, { cause, details: { schedule: key } });
    host.report(error, { phase: 'run', agent: nameOf(agent) });
  };

  const wait = async (
    runs: NonNullable<AgentStore['runs']>,
    schedule: Schedule,
    last?: Waiting['last'],
    known?: number,
  ): Promise<void> => {
    const { key } = schedule;
    const now = clock.now();
    const due = known ?? (await nextTime(schedule, now));
    if (due === undefined) return;
    const claim = runs.claim(scope, {
      runId: host.newId(),
      sessionId: key,
      from: 'head',
      mode: 'accepted',
      worker: waitingWorker,
      ttl: Math.min(Math.max(1, due - now), waitingTtl),
      inputs: [],
      context: defined({ due, times: timesOf(schedule), last }),
    });
    await claim.catch((error: unknown) => {
      // Another process was faster.
      if (!hasStatus(error, 'ABORTED')) throw error;
    });
    nextTimes.set(key, due);
  };

  /** Takes a time out of the store, if it has expired or `anyway`. Only one process gets it. */
  const take = async (
    { runs }: AgentStore,
    { run }: Waiting,
    { anyway = false }: { readonly anyway?: boolean } = {},
  ): Promise<RunRef | undefined> => {
    const request = {
      agents: [scope.agent],
      runIds: [run.runId],
      worker: host.worker,
      ttl,
      limit: 1,
    };
    const waitingAs = anyway ? { waitingAs: waitingWorker } : {};
    const [taken] = (await runs?.takeOver({ ...request, ...waitingAs })) ?? [];
    return taken?.run;
  };

  const startRun = async (
    schedule: Schedule,
    due: number,
    sessionId: string,
  ): Promise<StartedRun | undefined> => {
    const { key, owner, context } = schedule;
    const agent = agentOf(schedule);
    const { spec } = internalsOf(agent);
    const runs = runsOf(schedule);
    const requestId = `schedule ${key} ${textOf(due)}`;
    const whose = scopeOf(agent, owner);
    const isOwn = schedule.sessionId === undefined;
    // Request ids are forgotten after a day, sessions are not.
    if (isOwn && clock.now() - due > requestTtl) {
      const before = await spec.store?.timeline?.getSession(whose, sessionId);
      if (before?.headId !== undefined) return undefined;
    }
    const { concurrency = 1 } = schedule;
    const known = await runs.getRequest(requestKey(whose, requestId));
    if (isOwn && known === undefined) {
      const open = (await runs.listRuns(whose)).filter((run) =>
        run.sessionId.startsWith(`${key}@`),
      );
      if (open.length >= concurrency) throw stillActive(open.map(({ runId }) => runId));
    }
    const given = await inputOf(schedule, due);
    try {
      return await agent.start(given, { requestId, sessionId, ...defined({ owner, context }) });
    } catch (error) {
      // The first attempt has started it, with another input.
      if (known !== undefined && hasStatus(error, 'INVALID_ARGUMENT')) return undefined;
      throw error;
    }
  };

  /** Starts the run of a time that was taken, and lets the next time wait. What is left open here is taken again when its claim expires. */
  const fire = async (
    store: AgentStore,
    schedule: Schedule,
    { due }: Waiting,
    ref: RunRef,
  ): Promise<void> => {
    const { runs } = store;
    if (runs === undefined) return;
    // A worker that is not set up leaves the time to the others.
    internalsOf(agentOf(schedule)).spec.checkSetup?.(undefined);
    const { key } = schedule;
    const sessionId = schedule.sessionId ?? `${key}@${textOf(due)}`;
    let last: Waiting['last'];
    try {
      const run = await startRun(schedule, due, sessionId);
      last = { due: textOf(due), sessionId, ...(run && { runId: run.id }) };
    } catch (error) {
      if (!isFinal(error)) throw error;
      report(schedule, error, due);
      last = { due: textOf(due), error: messageOf(error) };
    }
    troubles.delete(key);
    try {
      await runs.release(ref);
    } catch (error) {
      // This process was so slow that another one has started the run again, which found the first one.
      if (hasStatus(error, 'ABORTED')) return;
      throw error;
    }
    await wait(runs, schedule, last);
  };

  const lookAt = async (
    store: AgentStore,
    schedule: Schedule,
    waiting: Waiting | undefined,
  ): Promise<number> => {
    const { key } = schedule;
    const { runs } = store;
    if (runs === undefined || starting.has(key)) return 0;
    const now = clock.now();
    const isNew = !compared.has(key);
    compared.add(key);
    if (waiting === undefined) {
      await wait(runs, schedule);
      return 0;
    }
    const { due, times, last, run } = waiting;
    nextTimes.set(key, due);
    if (times !== timesOf(schedule)) {
      // The schedule has changed. Later, this may be a process of the earlier version: it leaves the times of the new one alone.
      if (!isNew) return 0;
      return await replace(store, schedule, waiting);
    }
    const isWaiting = run.worker === waitingWorker && !run.expired;
    if (isWaiting) {
      const latest = await nextTime(schedule, now + maxSkew);
      if (latest === undefined || due > latest) return await replace(store, schedule, waiting);
    }
    if (!run.expired) return 0;
    const ref = await take(store, waiting);
    if (ref === undefined) return 0;
    if (due > now) {
      // It is further away than a claim can last, or a backup was restored.
      await runs.release(ref);
      await wait(runs, schedule, last, due);
      return 0;
    }
    starting.add(key);
    const failed = (error: unknown): void => report(schedule, error, due);
    const done = (): void => void starting.delete(key);
    host.background(fire(store, schedule, waiting, ref).catch(failed).finally(done));
    return 1;
  };
  const replace = async (
    store: AgentStore,
    schedule: Schedule,
    waiting: Waiting,
  ): Promise<number> => {
    const ref = await take(store, waiting, { anyway: true });
    if (ref === undefined) compared.delete(schedule.key);
    else {
      await store.runs?.release(ref);
      if (store.runs) await wait(store.runs, schedule, waiting.last);
    }
    return 0;
  };
  /** Deletes what removed schedules have left. */
  const sweep = async (store: AgentStore, found: readonly Waiting[]): Promise<void> => {
    swept.add(store);
    for (const each of found) {
      if (schedules.has(each.key) || each.due > clock.now() - keptFor) continue;
      const ref = await take(store, each);
      if (ref !== undefined) await store.runs?.release(ref);
    }
  };

  return {
    add(schedule) {
      checkSchedule(schedule);
      const { key } = schedule;
      if (schedules.has(key)) {
        throw new WaymarkError(
          'ALREADY_EXISTS',
          `There is already a schedule "${key}". Choose another key.`,
        );
      }
      schedules.set(key, schedule);
    },
    async check() {
      for (const schedule of schedules.values()) {
        runsOf(schedule);
        await nextTime(schedule, clock.now());
      }
    },
    async look(store, agents) {
      const own = [...schedules.values()].filter((each) =>
        agents.some(({ name }) => name === nameOf(each.agent)),
      );
      if (own.length === 0 && swept.has(store)) return 0;
      const found = await readWaiting(store);
      if (!swept.has(store)) await sweep(store, found);
      let due = 0;
      for (const schedule of own) {
        try {
          due += await lookAt(
            store,
            schedule,
            found.find(({ key }) => key === schedule.key),
          );
        } catch (error) {
          if (!isFinal(error)) throw error;
          report(schedule, error);
        }
      }
      return due;
    },
    untilNext() {
      const now = clock.now();
      const left = [...nextTimes.values()].map((time) => time - now).filter((ms) => ms > 0);
      return left.length === 0 ? undefined : Math.min(...left);
    },
    async list() {
      const stores = new Map<AgentStore | undefined, Promise<readonly Waiting[]>>();
      const all = [...schedules.values()].map(async (schedule): Promise<ScheduleInfo> => {
        runsOf(schedule);
        const { store } = internalsOf(agentOf(schedule)).spec;
        const reading = stores.get(store) ?? (store ? readWaiting(store) : Promise.resolve([]));
        stores.set(store, reading);
        const found = (await reading).find(
          ({ key, times }) => key === schedule.key && times === timesOf(schedule),
        );
        const next = found?.due ?? (await nextTime(schedule, clock.now()));
        const { key, agent, cron, timeZone, every, owner, sessionId } = schedule;
        const nextAt = next === undefined ? undefined : textOf(next);
        const times = { cron, timeZone, every, owner, sessionId, nextAt, last: found?.last };
        return defined({ key, agent: nameOf(agent), ...times }) as ScheduleInfo;
      });
      return await Promise.all(all);
    },
    async run(key) {
      const schedule = schedules.get(key);
      if (schedule === undefined) {
        const known = [...schedules.keys()].map((each) => `"${each}"`).join(', ');
        throw new WaymarkError(
          'NOT_FOUND',
          `There is no schedule "${key}". ${known === '' ? 'This app has none.' : `There are: ${known}.`}`,
        );
      }
      const now = clock.now();
      const { owner, context, sessionId } = schedule;
      return await agentOf(schedule).start(
        await inputOf(schedule, now),
        defined({ owner, context, sessionId }),
      );
    },
  };
}

async function readWaiting({ runs }: AgentStore): Promise<readonly Waiting[]> {
  const found = (await runs?.listRuns(scope)) ?? [];
  return found.map((run) => {
    const { due, times, last } = run.context as unknown as Pick<Waiting, 'due' | 'times' | 'last'>;
    return { run, key: run.sessionId, due, times, last };
  });
}

function stillActive(runs: readonly string[]): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `${runs.length === 1 ? 'An earlier run is' : `${runs.length} earlier runs are`} still active. Raise \`concurrency\`, or stop the run.`,
    { details: { running: runs[0] ?? null } },
  );
}

/** Whether trying again would be refused for the same reason, or would be too late. */
function isFinal(error: unknown): boolean {
  return hasStatus(
    error,
    'ABORTED',
    'FAILED_PRECONDITION',
    'INVALID_ARGUMENT',
    'NOT_FOUND',
    'PERMISSION_DENIED',
  );
}
