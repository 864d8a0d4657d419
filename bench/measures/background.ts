// H: runs that go on without their caller, worked on by processes of their own.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { claimTtl, type ModelEvent, pollInterval, waitForSignal } from '../systems/background.ts';
import { loadBackground } from '../systems/background-systems.ts';

/** All in milliseconds. */
export interface BackgroundTimes {
  /** Until the caller may go. */
  readonly detach: Stats;
  /** From an abort in one process until the model's signal in another. */
  readonly abort: Stats;
  /** From an abort in one process until the run has ended in another. */
  readonly ended?: Stats;
  /** From `kill -9` of the process that works on a run until another one has called the model for it. */
  readonly takeover?: Stats;
  /** How long of it the claim had expired, in intervals between two looks for expired claims. */
  readonly looks?: Stats;
  /** From the graceful shutdown of the process that works on a run until another one has called the model for it. */
  readonly handOver?: Stats;
}

export async function measure(job: Job): Promise<BackgroundTimes> {
  mkdirSync(job.place.directory, { recursive: true });
  const { detaches, aborts, kills } = job.scale.background;
  const detach: number[] = [];
  const aborted: Aborted[] = [];
  const taken: Taken[] = [];
  const handOver: number[] = [];
  const worker = await startWorker(job);
  try {
    // The first ones compile the code.
    for (let at = 0; at < detaches + 5; at++) {
      const { ms } = await worker.detach('answer');
      if (at >= 5) detach.push(ms);
    }
    for (let at = 0; at < aborts + 2; at++) {
      const found = await abortFromHere(job, worker);
      if (at >= 2) aborted.push(found);
    }
  } finally {
    worker.kill();
  }
  // Nobody takes over for Genkit.
  if (takesOver(job)) {
    for (let at = 0; at < kills; at++) {
      taken.push(await takeover(job));
      handOver.push(await handingOver(job));
    }
  }
  const ended = aborted.flatMap((each) => each.ended ?? []);
  return {
    detach: statsOf(detach),
    abort: statsOf(aborted.map(({ signal }) => signal)),
    ...(ended.length > 0 && { ended: statsOf(ended) }),
    ...(taken.length > 0 && {
      takeover: statsOf(taken.map(({ ms }) => ms)),
      looks: statsOf(taken.map(({ looks }) => looks)),
      handOver: statsOf(handOver),
    }),
  };
}

function takesOver({ system }: Job): boolean {
  return system === 'waymark';
}

interface Aborted {
  readonly signal: number;
  readonly ended?: number;
}

async function abortFromHere(job: Job, worker: Worker): Promise<Aborted> {
  const { system, variant, place } = job;
  const open = await loadBackground(system);
  const here = await open(variant, place, () => {});
  const called = worker.next('called');
  const { id } = await worker.detach(waitForSignal);
  await called;
  const stopped = worker.next('stopped');
  const ended = takesOver(job) ? worker.next('ended') : undefined;
  const started = now();
  await here.abort(id);
  const signal = (await stopped).at - started;
  const end = await ended;
  await here.close();
  return { signal, ...(end && { ended: end.at - started }) };
}

interface Taken {
  readonly ms: number;
  readonly looks: number;
}

async function takeover(job: Job): Promise<Taken> {
  return await betweenTwo(job, async (first, second, id) => {
    const takenOver = second.next('called');
    const killed = now();
    first.kill();
    const seen = await second.lastSeen(id);
    const { at } = await takenOver;
    return { ms: at - killed, looks: (at - (seen + claimTtl)) / pollInterval };
  });
}

async function handingOver(job: Job): Promise<number> {
  return await betweenTwo(job, async (first, second) => {
    const takenOver = second.next('called');
    const told = now();
    first.close();
    return (await takenOver).at - told;
  });
}

/** A run that one process works on while another one is there to take it. */
async function betweenTwo<Found>(
  job: Job,
  measureRun: (first: Worker, second: Worker, id: string) => Promise<Found>,
): Promise<Found> {
  const first = await startWorker(job);
  const called = first.next('called');
  const { id } = await first.detach(waitForSignal);
  await called;
  const second = await startWorker(job);
  try {
    const found = await measureRun(first, second, id);
    // Left open, it would be taken over by the processes of the next one.
    await second.abort(id);
    return found;
  } finally {
    first.kill();
    second.kill();
  }
}

interface Told {
  readonly event: ModelEvent | 'ready' | 'detached' | 'seen' | 'aborted';
  readonly at: number;
  readonly id?: string;
  readonly ms?: number;
}

interface Worker {
  next(event: Told['event']): Promise<Told>;
  detach(text: string): Promise<{ readonly id: string; readonly ms: number }>;
  /** When the worker of a run was last heard of, on the clock of {@link now}. */
  lastSeen(id: string): Promise<number>;
  abort(id: string): Promise<void>;
  close(): void;
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
    async lastSeen(id) {
      const seen = next('seen');
      child.send({ lastSeen: id });
      return (await seen).at;
    },
    async abort(id) {
      const aborted = next('aborted');
      child.send({ abort: id });
      await aborted;
    },
    close: () => void child.send({ close: '' }),
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
