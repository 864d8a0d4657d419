import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Agent } from '../../agent/contract/agent.ts';
import type { App } from '../../app.ts';
import { waitUntil } from './contract-agent.ts';
import type { ContractProcess } from './contract-process.ts';

/** A deployment for the crash tests. */
export interface CrashKit {
  startProcess(options?: { readonly attempts?: number }): Promise<ContractProcess>;
  /** An app that only reads. */
  observe(): Promise<{ readonly app: App; readonly agent: Agent }>;
}

/** Starts processes one after another: a new one whenever the last has died. */
interface Supervised {
  current(): ContractProcess;
  readonly deaths: () => number;
  stop(): Promise<void>;
}

const longest = 170_000;

/** Declares the tests of runs that kill their processes. */
export function crashContract(useKit: () => CrashKit): void {
  let supervised: Supervised | undefined;
  let folders: string[] = [];
  afterEach(async () => {
    await supervised?.stop();
    supervised = undefined;
    for (const each of folders) await rm(each, { recursive: true, force: true });
    folders = [];
  });
  const supervise = async (options?: { readonly attempts?: number }): Promise<Supervised> => {
    supervised = await superviseProcesses(() => useKit().startProcess(options));
    return supervised;
  };
  const folder = async (): Promise<string> => {
    const made = await mkdtemp(join(tmpdir(), 'waymark-engine-'));
    folders.push(made);
    return made;
  };
  const isBegun = async (agent: Agent, runId: string): Promise<boolean> => {
    for await (const event of agent.watch(runId)) if (event.type === 'chunk') return true;
    return false;
  };

  test(
    'S222 S223 S224: a run that kills its process is given up, those in the same process are not, and it can be retried',
    async () => {
      const { agent } = await useKit().observe();
      const { current, deaths } = await supervise();
      const held = await folder();
      const poison = await folder();
      const neighbours: string[] = [];
      for (let n = 0; n < 5; n++) neighbours.push(await current().run({ waitWhile: held }));
      for (const runId of neighbours) await waitUntil(() => isBegun(agent, runId));
      const runId = await current().run({ dieWhile: poison });
      await waitUntil(async () => deaths() === 1);
      await rm(held, { recursive: true });
      for (const each of neighbours) {
        expect(await agent.wait(each)).toMatchObject({ status: 'succeeded' });
      }
      const ended = await agent.wait(runId);
      expect(ended).toMatchObject({
        status: 'failed',
        error: {
          status: 'INTERNAL',
          message: expect.stringContaining('without progress'),
          details: { deadLetter: true },
        },
      });
      expect(deaths()).toBe(3);

      const { sessionId } = ended;
      const attempts = [1, 2, 3].map(() => ({
        attempt: expect.any(Number),
        error: expect.stringContaining('no sign of life'),
      }));
      const since = expect.any(String);
      expect((await agent.listDeadRuns()).items).toEqual([
        { snapshotId: runId, sessionId, agent: agent.name, attempts, since },
      ]);
      expect(await agent.listDeadRuns({ owner: 'bob' })).toEqual({ items: [] });
      await expect(agent.retryRun(runId, { owner: 'bob' })).rejects.toMatchObject({
        status: 'NOT_FOUND',
      });
      await rm(poison, { recursive: true });
      const again = await agent.retryRun(runId);
      expect(again.sessionId).toBe(sessionId);
      expect(await agent.wait(again.snapshotId)).toMatchObject({ status: 'succeeded' });
      expect(await agent.listDeadRuns()).toEqual({ items: [] });
      await expect(agent.retryRun(runId)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    },
    longest,
  );

  test(
    'S222: a run that makes progress is not given up, however often its process dies',
    async () => {
      const { agent } = await useKit().observe();
      const { current, deaths } = await supervise({ attempts: 2 });
      const runId = await current().run({ deadlySteps: 3 });
      expect(await agent.wait(runId)).toMatchObject({ status: 'succeeded' });
      expect(deaths()).toBe(3);
    },
    longest,
  );

  test(
    'S222 S122: a turn that a server accepted is given up, too, and deleted with its session',
    async () => {
      const { agent } = await useKit().observe();
      const { current, deaths } = await supervise({ attempts: 2 });
      const poison = await folder();
      const accepted = 'accepted';
      const runId = await current().run({ dieWhile: poison }, accepted);
      const ended = await agent.wait(runId);
      expect(ended).toMatchObject({
        status: 'failed',
        event: 'turnEnd',
        error: { details: { deadLetter: true } },
      });
      expect(deaths()).toBe(2);
      expect(await agent.listDeadRuns()).toMatchObject({ items: [{ snapshotId: runId }] });
      expect(await agent.deleteSession(ended.sessionId)).toBe(true);
      expect(await agent.listDeadRuns()).toEqual({ items: [] });
    },
    longest,
  );
}

async function superviseProcesses(start: () => Promise<ContractProcess>): Promise<Supervised> {
  let current = await start();
  let deaths = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      await current.ended;
      if (isOver) return;
      deaths++;
      current = await start();
    }
  })();
  return {
    current: () => current,
    deaths: () => deaths,
    async stop() {
      isOver = true;
      current.kill();
      await watching;
      current.kill();
      await current.ended;
    },
  };
}
