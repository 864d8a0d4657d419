import type { Agent } from '../../agent/contract/agent.ts';
import type { DispatchedRun } from '../../agent/contract/dispatcher.ts';
import { defined } from '../../core/json/json.ts';
import { observeGauges } from '../../core/metrics.ts';
import type { QueueHandoff } from '../../store/contract/store.ts';
import {
  type DeadLetter,
  type Engine,
  type EngineAgent,
  type EngineEnv,
  notAttached,
} from '../engine.ts';
import { createJobInsert } from './job.ts';
import { checkEngineOptions, type PgBossEngineOptions } from './options.ts';
import { createQueue } from './queue.ts';
import { createQueueGauge } from './queue-depth.ts';
import { createSchedules, type RunSchedule } from './schedules.ts';
import { createJobCompletion, queueWorker } from './work-job.ts';
import { Worker } from './worker.ts';

/** An engine for any number of machines that share one Postgres. */
export interface PgBossEngine extends Engine {
  /** The dead-letter queue of all agents and owners: runs whose process died too often. */
  deadLetters(): Promise<readonly DeadLetter[]>;
  /** Retries a dead-lettered run as a new run; resolves to its id. */
  retry(runId: string): Promise<string>;
  /** Creates or replaces a schedule. */
  schedule(schedule: RunSchedule): Promise<void>;
  /** Deletes a schedule; an unknown key is ignored. */
  unschedule(key: string): Promise<void>;
  /** All schedules. */
  schedules(): Promise<readonly RunSchedule[]>;
  /** Starts a run of a schedule now, regardless of its cron time. */
  runNow(key: string): Promise<void>;
}

/** Milliseconds between two polls for due schedules. */
const schedulesEvery = 1_000;

/**
 * An engine over pg-boss, in the database of the app's Postgres store. The transaction that records a detached run also
 * enqueues it, and any worker process can execute it.
 *
 * @example
 * const app = waymark({
 *   store: postgresStore({ connectionString }),
 *   engine: pgBossEngine({ connectionString, slots: 20 }),
 * });
 */
export function pgBossEngine(options: PgBossEngineOptions): PgBossEngine {
  checkEngineOptions(options);
  const { slots = 10, heartbeat = 10_000, attempts } = options;
  const { maxWaiting = 10_000, versionGrace = 30_000 } = options;
  let parts: ReturnType<typeof connect> | undefined;
  let stops: (() => void)[] = [];
  let stopObserving: (() => void) | undefined;
  let beginning: Promise<void> | undefined;
  let names = options.agents;

  const onError = (error: unknown): void => parts?.env.report(error);
  const started = (): NonNullable<typeof parts> => {
    if (parts === undefined) throw notAttached();
    return parts;
  };
  // Reports to OpenTelemetry, also in processes that do not work: a queue grows most when there is no worker to report it.
  const observe = (): void => {
    stopObserving ??= observeGauges(
      {
        'waymark.queue.waiting': { unit: '{run}', description: 'Runs that wait for a worker' },
        'waymark.queue.oldest': {
          unit: 'ms',
          description: 'How long the oldest of them has waited',
        },
      },
      async () => {
        const { waiting, oldestMs } = await started().gauge.depth();
        return { 'waymark.queue.waiting': waiting, 'waymark.queue.oldest': oldestMs };
      },
    );
  };
  const own = (): readonly EngineAgent[] => {
    const all = started().env.agents();
    return names === undefined ? all : all.filter(({ agent }) => names?.includes(agent.name));
  };
  const agentOf = (name: string): Agent | undefined =>
    started()
      .env.agents()
      .find(({ agent }) => agent.name === name)?.agent;
  const queue = createQueue(options, onError);
  const insertJob = createJobInsert(queue);
  const schedules = createSchedules(queue, agentOf, onError);

  const beginScheduled = (): void => {
    beginning ??= schedules
      .begin()
      .catch(onError)
      .finally(() => {
        beginning = undefined;
      });
  };

  const handOver = (run: DispatchedRun): QueueHandoff => ({
    worker: queueWorker,
    within: (transaction) => insertJob(transaction, run),
  });

  const connect = (env: EngineEnv) => {
    const completion = createJobCompletion(queue, { clock: env.clock, onError });
    const gauge = createQueueGauge(queue, env.clock, maxWaiting);
    const work = { engine: env, queue, completion, agents: own, heartbeat, versionGrace, onError };
    // Turns that a server accepted, and turns detached while they ran, have no job: recovery finds them in the store.
    const recovery = env.recovery({
      exceptWorker: queueWorker,
      agents: () => own().map(({ agent }) => agent),
    });
    return { env, worker: new Worker(work), recovery, gauge, completion };
  };

  return {
    name: 'pg-boss',
    ...defined({ attempts }),
    dispatcher: {
      admit: () => started().gauge.admit(),
      handOver,
    },
    attach(env) {
      parts = connect(env);
    },
    async open() {
      await queue.open();
      observe();
    },
    start(chosen = {}) {
      const { env, worker, recovery } = started();
      names = chosen.agents ?? names;
      if (stops.length > 0) return;
      stops = [
        env.onHandedOver(() => worker.wake()),
        env.clock.every(schedulesEvery, beginScheduled),
      ];
      observe();
      worker.start(chosen.slots ?? slots);
      recovery.start(names);
    },
    stop() {
      for (const stop of stops) stop();
      stops = [];
      parts?.recovery.stop();
      parts?.worker.stop();
    },
    async recover() {
      const { recovery, worker } = started();
      worker.wake();
      return await recovery.look();
    },
    async status() {
      const { gauge, worker } = started();
      const { waiting, oldestMs } = await gauge.depth();
      return { engine: 'pg-boss', running: worker.size, waiting, oldestMs };
    },
    async close() {
      stopObserving?.();
      await parts?.worker.close();
      await beginning;
      await parts?.completion.flush();
      await queue.close();
    },
    deadLetters: async () => await started().env.deadLetters(),
    retry: async (runId) => await started().env.retry(runId),
    schedule: schedules.set,
    unschedule: schedules.remove,
    schedules: schedules.list,
    runNow: schedules.runNow,
  };
}
