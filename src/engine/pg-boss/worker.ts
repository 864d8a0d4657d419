import { waitAtMost } from '../../core/time.ts';
import type { EngineAgent } from '../engine.ts';
import { groupOf, type RunJob } from './job.ts';
import { type FetchedJob, type Queue, runQueue } from './queue.ts';
import { type Assignment, type WorkEnv, workJob } from './work-job.ts';

interface WorkerEnv extends WorkEnv {
  readonly queue: Queue;
  /** The agents whose runs this process executes. */
  readonly agents: () => readonly EngineAgent[];
  readonly heartbeat: number;
  readonly versionGrace: number;
  readonly onError: (error: unknown) => void;
}

/** Milliseconds between two polls without a notification. */
const pollInterval = 1_000;
/** Minimum milliseconds between two polls while there is work, so that one poll fetches several jobs. */
const gatherMs = 10;

/** Fetches jobs while it has free slots, and sends heartbeats for the jobs it executes. */
export class Worker {
  readonly #env: WorkerEnv;
  readonly #active = new Map<string, FetchedJob>();
  /** Groups that are left to other workers, with the time until which they are. */
  readonly #left = new Map<string, number>();
  #slots = 0;
  #running: Promise<void> | undefined;
  #stopped = false;
  #isWoken = false;
  #wake: (() => void) | undefined;
  #stopTouching: (() => void) | undefined;
  #touching: Promise<void> | undefined;

  constructor(env: WorkerEnv) {
    this.#env = env;
  }

  get size(): number {
    return this.#active.size;
  }

  start(slots: number): void {
    this.#slots = slots;
    const { engine, heartbeat } = this.#env;
    this.#stopped = false;
    this.#running ??= this.#loop();
    this.#stopTouching ??= engine.clock.every(heartbeat / 4, () => {
      this.#touching ??= this.#touch().finally(() => {
        this.#touching = undefined;
      });
    });
  }

  /** Polls now, because there may be work. */
  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** Returns unfinished jobs to the queue. */
  async close(): Promise<void> {
    this.stop();
    await this.#running;
    this.#stopTouching?.();
    this.#stopTouching = undefined;
    await this.#touching;
    const { completion } = this.#env;
    const left = [...this.#active.values()];
    this.#active.clear();
    await Promise.all(left.map((job) => completion.returnJob(job, 'handed-over')));
  }

  async #loop(): Promise<void> {
    const { onError, engine } = this.#env;
    while (!this.#stopped) {
      const free = this.#slots - this.#active.size;
      this.#isWoken = false;
      const begun = engine.clock.now();
      const found = free === 0 ? 0 : await this.#fetch(free).catch(failed);
      // A full batch means that there may be more; a released slot wakes the loop.
      if (found < free || free === 0) await this.#sleep();
      const early = gatherMs - (engine.clock.now() - begun);
      if (found > 0 && early > 0) await engine.clock.sleep(early);
    }
    this.#running = undefined;

    function failed(error: unknown): number {
      onError(error);
      return 0;
    }
  }

  async #fetch(free: number): Promise<number> {
    const { queue, engine } = this.#env;
    const boss = await queue.open({ supervise: true });
    const jobs = await boss.fetch<RunJob>(runQueue, {
      batchSize: free,
      includeMetadata: true,
      ignoreGroups: this.#ignored(),
    });
    const batch = jobs.flatMap((job) => this.#assign(job) ?? []);
    workJob(this.#env, batch).forEach((work, n) => {
      const id = batch[n]?.job.id ?? '';
      engine.background(work.finally(() => this.#free(id)));
    });
    return jobs.length;
  }

  /** Acquires a slot for a job; `undefined` when it is left to other workers. */
  #assign(job: FetchedJob & { readonly data: RunJob }): Assignment | undefined {
    const { engine, agents, completion } = this.#env;
    const found = agents().find(({ agent }) => agent.name === job.data.agent);
    if (found === undefined || this.#isForOthers(found, job)) {
      this.#leave(job, found === undefined);
      engine.background(completion.returnJob(job, 'not-mine'));
      return undefined;
    }
    this.#active.set(job.id, job);
    return { agent: found.agent, job };
  }

  #free(id: string): void {
    const wasFull = this.#active.size >= this.#slots;
    this.#active.delete(id);
    if (wasFull) this.wake();
  }

  /** Whether the run is still reserved for workers of the same version. Uses only the database's clock. */
  #isForOthers({ version }: EngineAgent, job: FetchedJob & { readonly data: RunJob }): boolean {
    if (job.data.version === version) return false;
    const freeSince = Math.max(job.createdOn.getTime(), job.startAfter.getTime());
    return job.startedOn.getTime() - freeSince < this.#env.versionGrace;
  }

  #leave({ id, data }: FetchedJob & { readonly data: RunJob }, isUnknown: boolean): void {
    const { engine, versionGrace } = this.#env;
    const group = groupOf(data);
    const isNew = !this.#left.has(group);
    this.#left.set(group, isUnknown ? Number.POSITIVE_INFINITY : engine.clock.now() + versionGrace);
    if (!isNew) return;
    const why = isUnknown
      ? `This worker does not know the agent "${data.agent}" and leaves its runs to others.`
      : `This worker has another version of "${data.agent}" and leaves runs of version "${data.version ?? ''}" to others for ${versionGrace} ms each.`;
    engine.report(new Error(why), { agent: data.agent, runId: id });
  }

  #ignored(): string[] | null {
    const now = this.#env.engine.clock.now();
    const known = new Set(
      this.#env.agents().map(({ agent, version }) => groupOf({ agent: agent.name, version })),
    );
    for (const [group, until] of this.#left) {
      if (until <= now || known.has(group)) this.#left.delete(group);
    }
    return this.#left.size === 0 ? null : [...this.#left.keys()];
  }

  async #sleep(): Promise<void> {
    if (this.#isWoken) return;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await waitAtMost(this.#env.engine.clock, pollInterval, woken);
    this.#wake = undefined;
  }

  async #touch(): Promise<void> {
    const { queue, onError } = this.#env;
    const jobs = [...this.#active.values()];
    if (jobs.length === 0) return;
    try {
      const boss = await queue.open();
      await boss.touch(runQueue, jobs);
    } catch (error) {
      onError(error);
    }
  }
}
