import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent } from '../../src/index.ts';
import { now, startWorker, type WorkerProcess } from './processes.ts';

/** Begins a run that does what the text says; gives its id. */
export async function begin(agent: Agent, text: string): Promise<string> {
  const message = { role: 'user' as const, content: [{ text }] };
  const { snapshotId = '' } = await agent.run({ message, detach: true });
  return snapshotId;
}

/** On an idle system: from recorded to started, and from the call of an abort to the handler's signal. */
export async function measureLatency(
  agent: Agent,
  worker: WorkerProcess,
  times: number,
): Promise<{ readonly toStart: number[]; readonly toAbort: number[] }> {
  const toStart: number[] = [];
  const toAbort: number[] = [];
  for (let n = 0; n < times; n++) {
    await sleep(30);
    const startedAt = worker.next('started');
    const runId = await begin(agent, 'endless');
    const enqueued = now();
    toStart.push((await startedAt) - enqueued);
    await sleep(30);
    const abortedAt = worker.next('aborted');
    const asked = now();
    await agent.abort(runId);
    toAbort.push((await abortedAt) - asked);
  }
  return { toStart, toAbort };
}

/** How long a run is without a worker when its worker is told to end, and when it is killed. */
export async function measureChangeOfHands(
  agent: Agent,
  connectionString: string,
): Promise<{ readonly drain: number; readonly takeover: number }> {
  const first = await startWorker(connectionString, 'waymark');
  const begun = first.next('started');
  const runId = await begin(agent, 'endless');
  await begun;
  const second = await startWorker(connectionString, 'waymark');
  const handedOver = second.next('started');
  const told = now();
  first.process.kill('SIGTERM');
  const drain = (await handedOver) - told;

  const third = await startWorker(connectionString, 'waymark');
  const takenOver = third.next('started');
  const killed = now();
  second.process.kill('SIGKILL');
  const takeover = (await takenOver) - killed;
  await agent.abort(runId);
  third.process.kill('SIGTERM');
  await once(third.process, 'exit');
  return { drain, takeover };
}
