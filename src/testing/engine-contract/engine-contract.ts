import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Agent } from '../../agent/contract/agent.ts';
import type { App } from '../../app.ts';
import { defineContractAgent, detached, waitUntil } from './contract-agent.ts';
import type { ContractProcess } from './contract-process.ts';
import { crashContract } from './crashes.ts';

/** A deployment over one store and one queue. Each app acts as a separate process. */
export interface EngineCluster {
  /** Opens an app over the shared store, with its own engine. With `work` it executes runs, otherwise it only accepts them. */
  createApp(options: { readonly work: boolean }): App;
  /** Starts a real worker process with `startContractProcess`. Without it the crash tests are skipped. */
  startProcess?(options?: { readonly attempts?: number }): Promise<ContractProcess>;
  /** Closes the deployment with its apps and processes. */
  close(): Promise<void>;
}

/** What the engine under test can do. */
interface EngineContractOptions {
  /** Whether any free worker may execute a detached run, instead of the process that accepted it. @default false */
  readonly dispatches?: boolean;
  /** Whether its clusters have `startProcess`. @default false */
  readonly processes?: boolean;
}

/**
 * Declares the conformance tests for engines. `open` returns an empty deployment for each test.
 *
 * @example
 * engineContract('my engine', openDeployment, { dispatches: true });
 */
export function engineContract(
  name: string,
  open: () => Promise<EngineCluster>,
  { dispatches = false, processes = false }: EngineContractOptions = {},
): void {
  describe(`${name} engine`, () => {
    let cluster: EngineCluster;
    let apps: App[] = [];
    beforeEach(async () => {
      cluster = await open();
      apps = [];
    });
    afterEach(async () => {
      await Promise.all(apps.map((app) => app.close({ grace: 0 })));
      await cluster.close();
    });
    const start = async (work: boolean): Promise<{ app: App; agent: Agent }> => {
      const app = cluster.createApp({ work });
      apps.push(app);
      const agent = defineContractAgent(app);
      await app.ready();
      return { app, agent };
    };
    const close = async (app: App, grace: number): Promise<void> => {
      apps = apps.filter((each) => each !== app);
      await app.close({ grace });
    };

    test('a detached run ends, and everybody sees all of its events', async () => {
      const { agent } = await start(true);
      const { agent: other } = await start(true);
      const { snapshotId = '' } = await agent.run(detached({ steps: 5 }));
      const texts: string[] = [];
      for await (const event of other.watch(snapshotId)) {
        if (event.type === 'chunk') texts.push(textOf(event.chunk));
        if (event.type === 'end') expect(event.snapshot.status).toBe('succeeded');
      }
      expect(texts.join('')).toBe('0;1;2;3;4;');
    });

    test('a worker that shuts down releases its runs, and another continues them', async () => {
      const first = await start(true);
      const { snapshotId = '' } = await first.agent.run(detached({ steps: 10_000, ms: 20 }));
      await waitUntil(async () => await running(first.agent, snapshotId));
      const before = await attemptOf(first.agent, snapshotId);
      const second = await start(true);
      await close(first.app, 0);
      await waitUntil(async () => (await attemptOf(second.agent, snapshotId)) > before);
      expect(await second.agent.abort(snapshotId)).toBe('aborted');
      expect((await second.agent.wait(snapshotId)).status).toBe('aborted');
    });

    test('a run can be stopped from an app that does not work on it', async () => {
      const { agent } = await start(true);
      const { agent: other } = await start(false);
      const { snapshotId = '' } = await agent.run(detached({ steps: 10_000, ms: 20 }));
      await waitUntil(() => running(agent, snapshotId));
      expect(await other.abort(snapshotId)).toBe('aborted');
      expect((await agent.wait(snapshotId)).status).toBe('aborted');
      // The worker saves the partial state on the snapshot.
      await waitUntil(async () => {
        const snapshot = await other.getSnapshot({ snapshotId });
        return (snapshot?.state?.messages?.length ?? 0) > 0;
      });
    });

    test('a run that fails ends once, as a failed one', async () => {
      const { agent } = await start(true);
      const { snapshotId = '' } = await agent.run(detached({ fail: true }));
      const ended = await agent.wait(snapshotId);
      expect(ended).toMatchObject({ status: 'failed', error: { message: expect.any(String) } });
    });

    test('the session of a run is free when the run has ended, and not before', async () => {
      const { agent } = await start(true);
      const { snapshotId = '', sessionId = '' } = await agent.run(detached({ steps: 20, ms: 20 }));
      await expect(agent.run(detached({}), { sessionId })).rejects.toMatchObject({
        status: 'ABORTED',
      });
      await agent.wait(snapshotId);
      const { snapshotId: second = '' } = await agent.run(detached({}), { sessionId });
      expect((await agent.wait(second)).status).toBe('succeeded');
    });

    test('its status counts what this app works on', async () => {
      const { app, agent } = await start(true);
      expect(await app.engine.status()).toMatchObject({ engine: app.engine.name, running: 0 });
      const { snapshotId = '' } = await agent.run(detached({ steps: 10_000, ms: 20 }));
      await waitUntil(async () => (await app.engine.status()).running === 1);
      await agent.abort(snapshotId);
      await waitUntil(async () => (await app.engine.status()).running === 0);
    });

    if (processes) {
      crashContract(() => ({
        startProcess: (options) =>
          cluster.startProcess?.(options) ?? expect.fail('the cluster has no startProcess'),
        observe: () => start(false),
      }));
    }

    if (!dispatches) return;
    test('an app that only accepts works on nothing', async () => {
      const server = await start(false);
      const { snapshotId = '' } = await server.agent.run(detached({ steps: 2 }));
      expect(await server.app.engine.status()).toMatchObject({ running: 0, waiting: 1 });
      expect((await server.agent.getSnapshot({ snapshotId }))?.status).toBe('pending');
      await start(true);
      expect((await server.agent.wait(snapshotId)).status).toBe('succeeded');
    });
  });
}

const textOf = (chunk: { modelChunk?: { content?: readonly object[] } | undefined }): string =>
  (chunk.modelChunk?.content ?? [])
    .map((part) => ('text' in part ? String(part.text) : ''))
    .join('');

async function running(agent: Agent, runId: string): Promise<boolean> {
  for await (const event of agent.watch(runId)) return event.type === 'chunk';
  return false;
}

async function attemptOf(agent: Agent, runId: string): Promise<number> {
  return (
    (await agent.listRuns()).items.find(({ snapshotId }) => snapshotId === runId)?.attempt ?? 0
  );
}
