// H: runs that go on without their caller, worked on by processes of their own.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { type ModelEvent, waitForSignal } from '../systems/background.ts';
import { loadBackground } from '../systems/background-systems.ts';

/** All in milliseconds. */
export interface BackgroundTimes {
  /** Until the caller may go. */
  readonly detach: Stats;
  /** From an abort in one process until the model's signal in another. */
  readonly abort: Stats;
  /** From `kill -9` of the process that works on a run until another one has called the model for it. */
  readonly takeover?: Stats;
}

export async function measure(job: Job): Promise<BackgroundTimes> {
  mkdirSync(job.place.directory, { recursive: true });
  const { detaches, aborts, kills } = job.scale.background;
  const times = { detach: [] as number[], abort: [] as number[], takeover: [] as number[] };
  const worker = await startWorker(job);
  try {
    // The first ones compile the code.
    for (let at = 0; at < detaches + 5; at++) {
      const { ms } = await worker.detach('answer');
      if (at >= 5) times.detach.push(ms);
    }
    for (let at = 0; at < aborts + 2; at++) {
      const ms = await abortFromHere(job, worker);
      if (at >= 2) times.abort.push(ms);
    }
  } finally {
    worker.kill();
  }
  // Nobody takes over for Genkit.
  if (job.system === 'waymark') {
    for (let at = 0; at < kills; at++) times.takeover.push(await takeover(job));
  }
  return {
    detach: statsOf(times.detach),
    abort: statsOf(times.abort),
    ...(times.takeover.length > 0 && { takeover: statsOf(times.takeover) }),
  };
}

async function abortFromHere({ system, variant, place }: Job, worker: Worker): Promise<number> {
  const open = await loadBackground(system);
  const here = await open(variant, place, () => {});
  const called = worker.next('called');
  const { id } = await worker.detach(waitForSignal);
  await called;
  const stopped = worker.next('stopped');
  const started = now();
  await here.abort(id);
  const { at } = await stopped;
  await here.close();
  return at - started;
}

async function takeover(job: Job): Promise<number> {
  const first = await startWorker(job);
  const called = first.next('called');
  await first.detach(waitForSignal);
  await called;
  const second = await startWorker(job);
  try {
    const takenOver = second.next('called');
    const killed = now();
    first.kill();
    return (await takenOver).at - killed;
  } finally {
    second.kill();
  }
}

interface Told {
  readonly event: ModelEvent | 'ready' | 'detached';
  readonly at: number;
  readonly id?: string;
  readonly ms?: number;
}

interface Worker {
  next(event: Told['event']): Promise<Told>;
  detach(text: string): Promise<{ readonly id: string; readonly ms: number }>;
  kill(): void;
}

async function startWorker({ system, variant, place }: Job): Promise<Worker> {
  const program = join(import.meta.dirname, '../background-worker.ts');
  const child = fork(program, [system, variant, place.directory, place.postgres], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const next = (event: Told['event']): Promise<Told> => told(child, event);
  await next('ready');
  return {
    next,
    async detach(text) {
      const detached = next('detached');
      child.send({ text });
      const { id = '', ms = Number.NaN } = await detached;
      return { id, ms };
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

function told(child: ChildProcess, event: Told['event']): Promise<Told> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void =>
      reject(new Error(`The worker ended with ${code} before it was ${event}.`));
    const onMessage = (message: Told): void => {
      if (message.event !== event) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message);
    };
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
